import type { Command } from 'commander';
import { invalid } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { Cli } from '../cli.ts';
import { port as portOf } from '../input.ts';
import { callersToken, serveUntilInterrupted } from '../serving.ts';

interface Options {
  host: string;
  port: number;
  token?: string;
  origin: string[];
}

/** `perdure codec-server`: lets Temporal's web UI show what is encrypted. */
export function codecServer(program: Command, cli: Cli): void {
  program
    .command('codec-server')
    .summary("decode payloads for Temporal's web UI")
    .description(
      "Decode payloads for Temporal's web UI and command line with the data converter, until Ctrl-C or SIGTERM.",
    )
    .option('--host <name>', 'address to listen on; any but 127.0.0.1 lets other machines in', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 picks a free one', portOf, 7281)
    .option('--origin <url...>', 'web UIs that may call', ['http://localhost:8233', 'http://127.0.0.1:8233'])
    .option(
      '--token <text>',
      'token of callers, at least 16 characters (default: PERDURE_CODEC_TOKEN, or a new token, which is printed)',
    )
    .addHelpText(
      'after',
      '\nIn the web UI, set the codec server to <url>/<token>. For the command line:' +
        '\ntemporal workflow show --codec-endpoint <url> --codec-auth "Bearer <token>"',
    )
    .action(async ({ host, port, token: typed, origin }: Options) => {
      const { terminal } = cli;
      const { dataConverter } = await cli.dataConverter();
      if (dataConverter === undefined) {
        throw invalid(
          'data converter',
          'name its module: --data-converter <module>, or PERDURE_DATA_CONVERTER',
        );
      }
      const { token, shown } = callersToken(typed, 'PERDURE_CODEC_TOKEN');
      const { createCodecServer } = await import('../../encryption/index.ts');
      const fetch = createCodecServer({ dataConverter, token, origins: origin });
      const api = { fetch, close: () => undefined };
      await serveUntilInterrupted(cli, [api, { host, port }], (url) =>
        terminal.item(
          { type: 'ready', url, ...defined({ token: shown }), origins: origin, pid: process.pid },
          () =>
            [
              `decoding    ${url} for ${origin.join(', ')}`,
              `token       ${shown ?? 'the one that you gave'}`,
              `  next: set the codec server of the web UI to ${url}/${shown ?? '<token>'}`,
            ].join('\n'),
        ),
      );
    });
}
