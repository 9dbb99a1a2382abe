import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Command } from 'commander';
import { invalid } from '../../contract/errors.ts';
import type { Cli } from '../cli.ts';
import { port as portOf } from '../input.ts';

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
      const stop = cli.untilInterrupted();
      const { dataConverter } = await cli.dataConverter();
      if (dataConverter === undefined) {
        throw invalid(
          'data converter',
          'name its module: --data-converter <module>, or PERDURE_DATA_CONVERTER',
        );
      }
      const given = typed ?? (process.env['PERDURE_CODEC_TOKEN'] || undefined);
      const token = given ?? randomBytes(32).toString('base64url');
      const [{ createCodecServer }, { serveHttp }] = await Promise.all([
        import('../../encryption/index.ts'),
        import('../../http/index.ts'),
      ]);
      const fetch = createCodecServer({ dataConverter, token, origins: origin });
      const http = await serveHttp({ fetch, close: () => undefined }, { host, port });
      const shown = given === undefined ? { token } : {};
      terminal.item({ type: 'ready', url: http.url, ...shown, origins: origin, pid: process.pid }, () =>
        [
          `decoding    ${http.url} for ${origin.join(', ')}`,
          `token       ${given === undefined ? token : 'the one that you gave'}`,
          `  next: set the codec server of the web UI to ${http.url}/${given === undefined ? token : '<token>'}`,
        ].join('\n'),
      );
      if (!stop.aborted) await once(stop, 'abort');
      await http.close();
      terminal.item({ type: 'stopped' }, () => 'stopped');
    });
}
