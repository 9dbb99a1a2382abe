/** The HTTP API on a socket. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { PerdureError } from '../contract/errors.ts';
import type { HttpApi } from './app.ts';

/** Bytes of a request's head: two ids of the longest kind, percent-encoded, and a token. */
const HEAD_BYTES = 65_536;
/** How long requests in flight get when the server closes, in milliseconds. */
const GRACE_MS = 10_000;

/** A server that listens. */
export interface HttpServer {
  /** `http://host:port`. */
  readonly url: string;
  /** Takes nothing new, ends streams, and lets what is in flight finish, for ten seconds at most. */
  close(): Promise<void>;
}

/** The names of this machine that only it itself can use. */
const LOOPBACK: readonly string[] = ['127.0.0.1', 'localhost', '::1'];

/** The names in a `Host` header that are right for an address: of the loopback interface its own, of others any. */
export function hostsOf(host: string): readonly string[] | undefined {
  return LOOPBACK.includes(host) ? ['127.0.0.1', 'localhost', '[::1]'] : undefined;
}

/**
 * Serves the API.
 *
 * @param options - `port`: 0 for a free one.
 * @throws PerdureError `INVALID_ARGUMENT` for an address that cannot be listened on
 */
export async function serveHttp(
  api: HttpApi,
  { host, port }: { host: string; port: number },
): Promise<HttpServer> {
  const server = createAdaptorServer({
    fetch: (request) => api.fetch(request),
    overrideGlobalObjects: false,
    serverOptions: { maxHeaderSize: HEAD_BYTES },
  }) as Server;
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'another program listens there' : message;
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `Cannot listen on ${host}:${port}: ${why}. Choose another --host or --port (0: a free one)`,
      { details: { host, port }, cause: error },
    );
  }
  let closing = false;
  server.on('request', (_, response) => {
    // A connection that has got its last answer would wait for a next request for seconds.
    response.once('close', () => closing && setImmediate(() => server.closeIdleConnections()));
  });
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close: async () => {
      closing = true;
      const closed = once(server, 'close');
      api.close();
      server.close();
      const late = setTimeout(() => server.closeAllConnections(), GRACE_MS);
      await closed;
      clearTimeout(late);
    },
  };
}
