import type { Command } from 'commander';
import { PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { TokenOptions } from '../../http/index.ts';
import type { Cli } from '../cli.ts';
import { jsonOf, port as portOf } from '../input.ts';
import { callersToken, serveUntilInterrupted } from '../serving.ts';

interface Options {
  host: string;
  port: number;
  token?: string;
  tokens?: string;
}

/** Without a shared token. */
const NO_TOKEN = { token: undefined, shown: undefined } as const;

/** `perdure serve`: sessions and checkpoints over HTTP. */
export function serve(program: Command, cli: Cli): void {
  program
    .command('serve')
    .summary('serve sessions and checkpoints over HTTP')
    .description(
      'Serve sessions and checkpoints over HTTP, for programs in any language, until Ctrl-C or SIGTERM.',
    )
    .option('--host <name>', 'address to listen on; any but 127.0.0.1 lets other machines in', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 picks a free one', portOf, 7280)
    .option(
      '--token <text>',
      'bearer token of callers, at least 16 characters (default: PERDURE_HTTP_TOKEN, or a new token, which is printed)',
    )
    .option(
      '--tokens <json>',
      'tokens of callers with names, as JSON or @file: [{"token", "name", "roles": ["read", "talk", "decide", "operate"], "tenant"?}] (default: PERDURE_HTTP_TOKENS)',
    )
    .addHelpText(
      'after',
      '\nCallers send "Authorization: Bearer <token>". Routes: /openapi.json.' +
        '\nAgents and threads need a worker on the same task queue: perdure worker.',
    )
    .action(async ({ host, port, token: typed, tokens: listed }: Options) => {
      const { terminal } = cli;
      const tokens = await tokensOf(listed);
      const isShared = tokens === undefined || (typed ?? process.env['PERDURE_HTTP_TOKEN'] ?? '') !== '';
      const { token, shown } = isShared ? callersToken(typed, 'PERDURE_HTTP_TOKEN') : NO_TOKEN;
      const { client, sessions, server, values } = await cli.connect();
      const [{ createHttpApi, hostsOf }, { TemporalSaver }] = await Promise.all([
        import('../../http/index.ts'),
        import('../../saver/index.ts'),
      ]);
      const hosts = hostsOf(host);
      const api = createHttpApi({
        client,
        sessions,
        saver: new TemporalSaver(client, { taskQueue: cli.taskQueue, values }),
        token,
        tokens,
        ...defined({ hosts }),
        onError: (error) =>
          terminal.error(error instanceof Error ? (error.stack ?? error.message) : String(error)),
      });
      const { namespace, connectionOptions } = server;
      const { address } = connectionOptions;
      await serveUntilInterrupted(cli, [api, { host, port }], (url) => {
        const ready = { type: 'ready', url, namespace, address, taskQueue: cli.taskQueue };
        terminal.item({ ...ready, ...defined({ token: shown }), pid: process.pid }, () =>
          [
            `serving     ${url} (namespace ${namespace} at ${address})`,
            ...(isShared
              ? [
                  `token       ${shown ?? (typed === undefined ? 'the value of PERDURE_HTTP_TOKEN' : 'the value of --token')}`,
                ]
              : []),
            ...(tokens === undefined ? [] : [`callers     ${tokens.map(({ name }) => name).join(', ')}`]),
            `OpenAPI     ${url}/openapi.json`,
            // A token that was typed is in no variable, and we do not print it.
            isShared && typed === undefined
              ? `  next: curl -H "Authorization: Bearer ${shown ?? '$PERDURE_HTTP_TOKEN'}" ${url}/sessions`
              : `  next: curl ${url}/openapi.json`,
          ].join('\n'),
        );
      });
    });
}

/** The named tokens of the option, or of the variable. The API checks each of them. */
async function tokensOf(option: string | undefined): Promise<TokenOptions[] | undefined> {
  const name = option === undefined ? 'PERDURE_HTTP_TOKENS' : '--tokens';
  const text = option ?? (process.env['PERDURE_HTTP_TOKENS'] || undefined);
  if (text === undefined) return undefined;
  const tokens = await jsonOf(name, text);
  if (Array.isArray(tokens)) return tokens as unknown as TokenOptions[];
  const message = `${name} is no list. Write '[{"token": "…", "name": "ada", "roles": ["read"]}]'`;
  throw new PerdureError('INVALID_ARGUMENT', message, { details: { option: name } });
}
