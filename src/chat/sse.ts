/** Chunks as server-sent events, as the AI SDK reads them. */
import { errorBody, reportUnexpected } from '../http/errors.ts';
import type { Chunk } from './writer.ts';

/** Pause between keep-alive comments, in milliseconds. Proxies end silent connections. */
const ALIVE_MS = 15_000;

/** Sends chunks until they end or the client has gone. */
export function sseResponse(
  chunks: AsyncGenerator<Chunk[]>,
  { gone, onError }: { gone: AbortController; onError: ((error: unknown) => void) | undefined },
): Response {
  const encoder = new TextEncoder();
  let alive: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      alive = setInterval(() => controller.enqueue(encoder.encode(':\n\n')), ALIVE_MS);
    },
    pull: async (controller) => {
      const send = (data: string): void => controller.enqueue(encoder.encode(`data: ${data}\n\n`));
      const close = (): void => {
        clearInterval(alive);
        send('[DONE]');
        controller.close();
      };
      try {
        const next = await chunks.next();
        if (next.done === true) return close();
        for (const chunk of next.value) send(JSON.stringify(chunk));
      } catch (error) {
        reportUnexpected(error, onError, gone.signal);
        send(JSON.stringify({ type: 'error', errorText: errorBody(error).error.message } satisfies Chunk));
        close();
      }
    },
    cancel: () => {
      clearInterval(alive);
      gone.abort();
    },
  });
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-vercel-ai-ui-message-stream': 'v1',
    },
  });
}
