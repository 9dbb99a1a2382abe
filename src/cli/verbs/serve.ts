import type { Command } from 'commander';
import { defined } from '../../contract/json.ts';
import { type CallersOptions, callersOf, withCallers } from '../callers.ts';
import type { Cli } from '../cli.ts';
import { count, port as portOf } from '../input.ts';
import { apiWithConsole, serveUntilInterrupted } from '../serving.ts';

const MB = 1_000_000;

interface Options extends CallersOptions {
  host: string;
  port: number;
  bodyLimit?: number;
}

/** `perdure serve`: sessions and checkpoints over HTTP. */
export function serve(program: Command, cli: Cli): void {
  const command = program
    .command('serve')
    .summary('serve sessions and checkpoints over HTTP')
    .description(
      'Serve sessions and checkpoints over HTTP, for programs in any language, until Ctrl-C or SIGTERM.',
    )
    .option('--host <name>', 'address to listen on; any but 127.0.0.1 lets other machines in', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 picks a free one', portOf, 7280)
    .option(
      '--body-limit <MB>',
      'most that a request may send (default: 3.1). Files in messages are base64, a third longer',
      count,
    );
  withCallers(command)
    .addHelpText(
      'after',
      '\nCallers send "Authorization: Bearer <token>". Routes: /openapi.json.' +
        '\nAgents and threads need a worker on the same task queue: perdure worker.',
    )
    .action(async (options: Options) => {
      const { terminal } = cli;
      const { host, port, bodyLimit } = options;
      const { access, shown, isCopied, lines } = await callersOf(options);
      const connected = await cli.connect();
      const api = await apiWithConsole(cli, connected, host, {
        ...access,
        ...defined({ bodyLimit: bodyLimit && bodyLimit * MB }),
        onError: (error) =>
          terminal.error(error instanceof Error ? (error.stack ?? error.message) : String(error)),
      });
      const { namespace, connectionOptions } = connected.server;
      const { address } = connectionOptions;
      await serveUntilInterrupted(cli, [api, { host, port }], (url) => {
        const console = `${url}/console${shown === undefined ? '' : `#token=${shown}`}`;
        const ready = { type: 'ready', url, console, namespace, address, taskQueue: cli.taskQueue };
        terminal.item({ ...ready, ...defined({ token: shown }), pid: process.pid }, () =>
          [
            `serving     ${url} (namespace ${namespace} at ${address})`,
            ...lines(),
            `console     ${console}`,
            `OpenAPI     ${url}/openapi.json`,
            isCopied
              ? `  next: curl -H "Authorization: Bearer ${shown ?? '$PERDURE_HTTP_TOKEN'}" ${url}/sessions`
              : `  next: curl ${url}/openapi.json`,
          ].join('\n'),
        );
      });
    });
}
