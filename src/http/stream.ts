/** A session's stream as server-sent events. */
import { setTimeout as delay } from 'node:timers/promises';
import type { StreamOptions, StreamPart } from '../client/index.ts';
import { errorBody } from './errors.ts';
import { type Operation, operation } from './operation.ts';

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
async function eventStream(
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

export const streamOperation: Operation = operation({
  id: 'streamSession',
  method: 'GET',
  path: '/sessions/{id}/stream',
  tag: 'sessions',
  role: 'read',
  summary: 'The session live, until nothing is left to do',
  description:
    'Server-sent events. Live: `text` {text}, `reasoning` {text}, `tool_input` {id, name, text}, and `reset` {} (discard ' +
    'the text so far). Recorded, with a `cursor` that is also the id of the event: `message` {id, role, text, blocks}, ' +
    '`call` {call, news}, `approval` {state, …}, `wait` {wait}, `pause` {paused}, `queue` {queue}, `run` {runId, cause}, `transcript` ' +
    '{from}, `spent` {budget}, `notice` {notice}, `closed` {status}, `phase` {phase, view}. Then `end` {}, or `error` ' +
    'with the body of an error. If the body ends with neither, the server has closed: connect again. A reader who ' +
    'reconnects with `Last-Event-ID` gets what came after that event. Needs no worker.',
  query: {
    since: {
      type: 'string',
      pattern: '^(start|[0-9a-f-]{36}:[0-9]{1,9}(:[0-9]{1,9})?)$',
      description:
        'A cursor, the id of a checkpoint, or `start`. Default: the header Last-Event-ID, or from now on.',
    },
    until: {
      type: 'string',
      pattern: '^(idle|rest|closed)$',
      description:
        '`idle`: it goes on over approvals, waits and pauses. `rest`: it ends there, too. `closed`: it ends when the ' +
        'session does. Default: idle.',
    },
  },
  answer: { status: 200, description: 'Events', mediaType: 'text/event-stream' },
  codes: [
    'SESSION_NOT_FOUND',
    'CHECKPOINT_CORRUPTION',
    'ENCRYPTED',
    'UNKNOWN_KEY',
    'CHECKPOINT_NOT_FOUND',
    'SESSION_BUSY',
  ],
  handle: async (request, { sessions }) => {
    const gone = new AbortController();
    const signal = AbortSignal.any([request.signal, gone.signal]);
    // A browser that reconnects repeats the address of its first request, and adds the header.
    const since = request.header('last-event-id') ?? request.text('since');
    const until = request.text('until') as StreamOptions['until'];
    const parts = sessions.get(request.param('id')).stream({ since, until, signal });
    return eventStream(parts, {
      signal,
      stop: () => gone.abort(),
      report: (error) => request.report(error),
    });
  },
});
