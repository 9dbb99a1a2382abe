import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Command } from 'commander';
import { defined } from '../../contract/json.ts';
import type { Cli } from '../cli.ts';
import { port as portOf } from '../input.ts';

interface Options {
  host: string;
  port: number;
  token?: string;
}

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
    .addHelpText(
      'after',
      '\nCallers send "Authorization: Bearer <token>". Routes: /openapi.json.' +
        '\nAgents and threads need a worker on the same task queue: perdure worker.',
    )
    .action(async ({ host, port, token: typed }: Options) => {
      const { terminal } = cli;
      const stop = cli.untilInterrupted();
      const given = typed ?? (process.env['PERDURE_HTTP_TOKEN'] || undefined);
      const token = given ?? randomBytes(32).toString('base64url');
      const { client, sessions, server, values } = await cli.connect();
      const [{ createHttpApi, hostsOf, serveHttp }, { TemporalSaver }] = await Promise.all([
        import('../../http/index.ts'),
        import('../../saver/index.ts'),
      ]);
      const hosts = hostsOf(host);
      const api = createHttpApi({
        client,
        sessions,
        saver: new TemporalSaver(client, { taskQueue: cli.taskQueue, values }),
        token,
        ...defined({ hosts }),
        onError: (error) =>
          terminal.error(error instanceof Error ? (error.stack ?? error.message) : String(error)),
      });
      const http = await serveHttp(api, { host, port });
      const { namespace, connectionOptions } = server;
      const { address } = connectionOptions;
      const ready = { type: 'ready', url: http.url, namespace, address, taskQueue: cli.taskQueue };
      const shown = given === undefined ? token : null;
      terminal.item({ ...ready, ...(shown === null ? {} : { token: shown }), pid: process.pid }, () =>
        [
          `serving     ${http.url} (namespace ${namespace} at ${address})`,
          `token       ${shown ?? (typed === undefined ? 'the value of PERDURE_HTTP_TOKEN' : 'the value of --token')}`,
          `OpenAPI     ${http.url}/openapi.json`,
          // A token that was typed is in no variable, and we do not print it.
          typed === undefined
            ? `  next: curl -H "Authorization: Bearer ${shown ?? '$PERDURE_HTTP_TOKEN'}" ${http.url}/sessions`
            : `  next: curl ${http.url}/openapi.json`,
        ].join('\n'),
      );
      if (!stop.aborted) await once(stop, 'abort');
      await http.close();
      terminal.item({ type: 'stopped' }, () => 'stopped');
    });
}
