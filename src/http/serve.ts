/** The HTTP API on a socket. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener, RequestError } from '@hono/node-server';
import { invalid, PerdureError } from '../contract/errors.ts';
import type { HttpApi } from './app.ts';
import { errorBody, errorResponse } from './errors.ts';

/** Bytes of a request's head: two of the longest ids, percent-encoded, and a token. */
const HEAD_BYTES = 65_536;
/** How long requests in flight may take when the server closes, in milliseconds. */
const GRACE_MS = 10_000;
/** How long a refused connection stays open for its caller to read the answer, in milliseconds. */
const LINGER_MS = 1_000;

export interface HttpServer {
  /** `http://host:port`. */
  readonly url: string;
  /** Accepts nothing new, closes streams, and waits for requests in flight, for ten seconds at most. */
  close(): Promise<void>;
}

/** Names by which only this machine can reach itself. */
const LOOPBACK: readonly string[] = ['127.0.0.1', 'localhost', '::1'];

/** The valid `Host` names of an address: for the loopback interface its own, otherwise any. */
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
  api: Pick<HttpApi, 'fetch' | 'close'>,
  { host, port }: { host: string; port: number },
): Promise<HttpServer> {
  const listener = getRequestListener((request) => api.fetch(request), {
    overrideGlobalObjects: false,
    errorHandler: (error) =>
      errorResponse(error instanceof RequestError ? invalid('request', error.message) : error),
  });
  // Node would refuse a missing Host without a body. The listener refuses it with one.
  const server = createServer(
    { maxHeaderSize: HEAD_BYTES, requireHostHeader: false },
    (request, response) => void listener(request, response),
  );
  answerRefused(server);
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'another program listens there' : message;
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `Cannot listen on ${host}:${port}: ${why}. Choose another --host or --port (0 picks a free one)`,
      { details: { host, port }, cause: error },
    );
  }
  let closing = false;
  server.on('request', (_, response) => {
    // An idle connection would otherwise keep the server open for seconds.
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

/** Answers requests that Node refuses before they reach the listener, with the usual body. */
function answerRefused(server: Server): void {
  const latest = new WeakMap<Duplex, ServerResponse>();
  server.on('request', ({ socket }, response) => latest.set(socket, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // This is the rest of a request that was refused already.
    if (socket.writableEnded) return;
    const response = latest.get(socket);
    const midway = response?.headersSent === true && !response.writableFinished;
    if (error.code === 'ECONNRESET' || !socket.writable || midway) {
      socket.destroy();
      return;
    }
    socket.end(refusal(error));
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  });
  server.on('checkExpectation', (_, response) => {
    const body = JSON.stringify(errorBody(invalid('Expect', 'only 100-continue is supported')));
    response.writeHead(417, { 'content-type': 'application/json' }).end(body);
  });
}

/** The raw answer to an unreadable request. */
function refusal(error: NodeJS.ErrnoException): string {
  const [status, told] = statusAndError(error);
  const body = JSON.stringify(errorBody(told));
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}

function statusAndError({ code, message }: NodeJS.ErrnoException): [number, PerdureError] {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return [431, tooLarge(`The request line and the headers are longer than ${HEAD_BYTES} bytes`)];
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return [413, tooLarge('The chunk extensions are too long')];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, invalid('request', 'did not arrive in time')];
    default:
      return [400, invalid('request', `is not HTTP: ${message}`)];
  }
}

function tooLarge(message: string): PerdureError {
  return new PerdureError('TOO_LARGE', message, { details: { field: 'request' } });
}
