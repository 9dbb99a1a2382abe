/** A session's stream as server-sent events. */
import { setTimeout as delay } from 'node:timers/promises';
import type { StreamPart } from '../client/index.ts';
import { errorBody } from './errors.ts';

/** Pause between keep-alive comments of a silent stream, in milliseconds. Proxies end silent connections. */
const ALIVE_MS = 15_000;
/** How long the answer waits for the first part, in milliseconds. */
const OPEN_MS = 1_000;

/**
 * Sends the parts of a stream as events named by their type, with their cursor as id, then `end`, or `error` when the
 * stream fails. A server that closes sends neither, so its readers connect again.
 *
 * @param options - `signal`: ends the stream, because the reader has gone or the server closes. `stop`: called when the
 * reader has gone. `report`: called with the error of a stream that fails.
 * @throws what the stream throws instead of its first part, if it throws within a second. The caller turns it into an
 * error response.
 */
export async function eventStream(
  parts: AsyncGenerator<StreamPart>,
  { signal, stop, report }: { signal: AbortSignal; stop: () => void; report: (error: unknown) => void },
): Promise<Response> {
  const encoder = new TextEncoder();
  let next = parts.next();
  // A stream that continues after a cursor may have no part for a long time.
  await Promise.race([next, delay(OPEN_MS, undefined, { ref: false })]);
  next.catch(() => undefined);
  let alive: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      alive = setInterval(() => controller.enqueue(encoder.encode(':\n\n')), ALIVE_MS);
    },
    pull: async (controller) => {
      const send = (event: string, data: object, id?: string): void => {
        const line = id === undefined ? '' : `id: ${id}\n`;
        controller.enqueue(encoder.encode(`${line}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
      };
      const close = (): void => {
        clearInterval(alive);
        controller.close();
      };
      const end = (event: string, data: object): void => {
        send(event, data);
        close();
      };
      try {
        const result = await next;
        if (signal.aborted) return close();
        if (result.done === true) return end('end', {});
        const { type, ...part } = result.value;
        send(type, part, 'cursor' in part ? part.cursor : undefined);
        next = parts.next();
        next.catch(() => undefined);
      } catch (error) {
        if (signal.aborted) return close();
        report(error);
        end('error', errorBody(error));
      }
    },
    cancel: async () => {
      clearInterval(alive);
      stop();
      await parts.return(undefined).catch(() => undefined);
    },
  });
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  });
}
