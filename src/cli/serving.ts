/** What the verbs that serve HTTP have in common. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { messageOf } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import type { HttpApi, HttpApiOptions, serveHttp } from '../http/index.ts';
import type { Cli, Connected } from './cli.ts';

/** The token of callers: typed, from the environment, or new. Only a new token is `shown`. */
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

/** The HTTP API with the console. `host` is the address that it will listen on. */
export async function apiWithConsole(
  cli: Cli,
  { client, sessions, values }: Connected,
  host: string,
  options: Omit<HttpApiOptions, 'client' | 'sessions' | 'saver' | 'hosts' | 'console'>,
): Promise<HttpApi> {
  const [{ createHttpApi, hostsOf }, { TemporalSaver }] = await Promise.all([
    import('../http/index.ts'),
    import('../saver/index.ts'),
  ]);
  const saver = new TemporalSaver(client, { taskQueue: cli.taskQueue, values });
  return createHttpApi({
    client,
    sessions,
    saver,
    ...options,
    ...defined({ hosts: hostsOf(host) }),
    console: true,
  });
}

/** The loopback interface: only this machine reaches it. */
const HERE = '127.0.0.1';

/** Serves the console and the HTTP API to this machine. The link has a new token, which is the system user's. */
export async function serveHere(
  cli: Cli,
  connected: Connected,
  port: number,
): Promise<{ link: string; close: () => Promise<void> }> {
  const { serveHttp } = await import('../http/index.ts');
  const token = randomBytes(32).toString('base64url');
  const api = await apiWithConsole(cli, connected, HERE, {
    tokens: [{ token, name: cli.actor(), roles: ['read', 'talk', 'decide', 'operate'] }],
    onError: (error) => cli.terminal.warn(messageOf(error)),
  });
  const http = await serveHttp(api, { host: HERE, port });
  return { link: `${http.url}/console#token=${token}`, close: () => http.close() };
}
