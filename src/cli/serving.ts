/** What the verbs that serve HTTP have in common. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { serveHttp } from '../http/index.ts';
import type { Cli } from './cli.ts';

/** The token of callers: typed, or that of the environment, or a new one. Only a new one is `shown`. */
export function callersToken(
  typed: string | undefined,
  variable: string,
): { token: string; shown: string | undefined } {
  const given = typed ?? (process.env[variable] || undefined);
  if (given !== undefined) return { token: given, shown: undefined };
  const token = randomBytes(32).toString('base64url');
  return { token, shown: token };
}

/** Serves until Ctrl-C or SIGTERM. */
export async function serveUntilInterrupted(
  cli: Cli,
  served: Parameters<typeof serveHttp>,
  onReady: (url: string) => void,
): Promise<void> {
  const stop = cli.untilInterrupted();
  const http = await (await import('../http/index.ts')).serveHttp(...served);
  onReady(http.url);
  if (!stop.aborted) await once(stop, 'abort');
  await http.close();
  cli.terminal.item({ type: 'stopped' }, () => 'stopped');
}
