/** A session's stream as server-sent events. */
import type { StreamPart } from '../client/index.ts';
import { errorBody } from './errors.ts';

/** Pause between keep-alive comments of a silent stream, in milliseconds. Proxies end silent connections. */
const ALIVE_MS = 15_000;

/**
 * Sends the parts of a stream as events named by their type, then `end`, or `error` when it breaks off.
 *
 * @param signal - ends the stream.
 * @throws what the stream throws before its first part. The caller turns it into an error response.
 */
export async function eventStream(
  parts: AsyncGenerator<StreamPart>,
  signal: AbortSignal,
  stop: () => void,
): Promise<Response> {
  const encoder = new TextEncoder();
  let next = await parts.next();
  let alive: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      alive = setInterval(() => controller.enqueue(encoder.encode(':\n\n')), ALIVE_MS);
    },
    pull: async (controller) => {
      const send = (event: string, data: object): void =>
        controller.enqueue(encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
      const close = (event: string, data: object): void => {
        clearInterval(alive);
        send(event, data);
        controller.close();
      };
      try {
        if (next.done === true || signal.aborted) return close('end', {});
        const { type, ...part } = next.value;
        send(type, part);
        next = await parts.next();
      } catch (error) {
        close('error', errorBody(error));
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
