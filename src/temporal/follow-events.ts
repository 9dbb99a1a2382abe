/** Follows a run's history with the server's long poll. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { GRPC } from './grpc.ts';
import { type HistoryEvent, isUnderWay, PAGE_MS, PAGE_SIZES, readEvents, TOO_MUCH } from './read-events.ts';

/**
 * How many long polls this process may have open, and has. A server refuses more than 1,200 for a namespace. Followers
 * beyond `max` look every two seconds instead.
 */
export const longPolls = { max: 1_000, open: 0 };

/** Pause between two looks of a follower without a long poll, in milliseconds. */
const LOOK_MS = 2_000;
/** The time-out of a poll, in milliseconds. An idle poll returns after 20 s; the SDK turns a refusal into silence. */
const POLL_MS = 30_000;
/** How long a refused follower only looks before it polls again, in milliseconds. */
const REFUSED_MS = 10_000;
/** How long the server may be unreachable, in milliseconds. */
const AWAY_MS = 60_000;
const AGAIN_MS = 250;

/** New events of a run. */
export interface FollowedPage {
  events: readonly HistoryEvent[];
  /** Id of the last event that the server has shown. A workflow task under way counts, but is not in `events` yet. */
  seen: number;
}

/**
 * Yields the events of a run as they are committed. Ends when the run has closed or the signal aborts. Waits for a
 * server that restarts.
 *
 * @param known - id of an event that exists: until it is read, a page without an answer is requested in smaller pieces
 * @throws Temporal's `ServiceError` when the run does not exist, or the server stays away for a minute
 */
export async function* followPages(
  client: Client,
  execution: { workflowId: string; runId: string },
  known: number,
  signal: AbortSignal,
): AsyncGenerator<FollowedPage> {
  let token: Uint8Array | null = null;
  let last = 0;
  let held: HistoryEvent[] = [];
  let step = 0;
  let pollsFrom = 0;
  let awaySince: number | null = null;
  while (!signal.aborted) {
    const isReading = last + held.length < known;
    const polls = isReading || (Date.now() >= pollsFrom && longPolls.open < longPolls.max);
    let events: readonly HistoryEvent[];
    let isClosed = false;
    try {
      if (polls) {
        const page = await poll(client, signal, isReading ? PAGE_MS : POLL_MS, {
          execution,
          maximumPageSize: PAGE_SIZES[step] ?? 1,
          ...(token === null ? {} : { nextPageToken: token }),
        });
        token = page.nextPageToken?.length ? page.nextPageToken : null;
        isClosed = token === null;
        events = page.history?.events ?? [];
      } else {
        warnOnce();
        await delay(LOOK_MS, undefined, { signal });
        events = await eventsAfter(client, execution, last);
      }
      awaySince = null;
    } catch (error) {
      if (signal.aborted) return;
      const code = (error as { code?: unknown } | null)?.code;
      if (code === GRPC.invalidArgument && token !== null) token = null;
      else if (TOO_MUCH.includes(code)) {
        step = Math.min(step + 1, PAGE_SIZES.length - 1);
        if (!isReading) pollsFrom = Date.now() + REFUSED_MS;
      } else if (code !== GRPC.unavailable) throw error;
      awaySince ??= Date.now();
      if (Date.now() - awaySince > AWAY_MS) throw error;
      await delay(AGAIN_MS, undefined, { signal }).catch(() => undefined);
      continue;
    }
    const fresh = events.filter((event) => idOf(event) > last);
    const from = fresh[0] === undefined ? Number.POSITIVE_INFINITY : idOf(fresh[0]);
    // The server may show a workflow task before it is recorded, and later give its event ids to other events.
    const all = [...held.filter((event) => idOf(event) < from), ...fresh];
    held = all.splice(all.findLastIndex((event) => !isUnderWay(event)) + 1);
    const end = all.at(-1);
    if (end !== undefined) last = idOf(end);
    if (fresh.length > 0) yield { events: all, seen: last + held.length };
    if (isClosed) return;
  }
}

type Request = Parameters<Client['workflowService']['getWorkflowExecutionHistory']>[0];

async function poll(
  client: Client,
  signal: AbortSignal,
  ms: number,
  request: Request,
): Promise<Awaited<ReturnType<Client['workflowService']['getWorkflowExecutionHistory']>>> {
  // The SDK never removes its listener from a signal, so each poll gets a signal of its own.
  const own = new AbortController();
  const abort = (): void => own.abort();
  signal.addEventListener('abort', abort, { once: true });
  longPolls.open += 1;
  try {
    return await client.withAbortSignal(own.signal, () =>
      client.withDeadline(Date.now() + ms, () =>
        client.workflowService.getWorkflowExecutionHistory({
          namespace: client.options.namespace,
          waitNewEvent: true,
          ...request,
        }),
      ),
    );
  } finally {
    longPolls.open -= 1;
    signal.removeEventListener('abort', abort);
  }
}

/** The events after the event `last`, in order. */
async function eventsAfter(
  client: Client,
  execution: { workflowId: string; runId: string },
  last: number,
): Promise<HistoryEvent[]> {
  const events: HistoryEvent[] = [];
  for await (const event of readEvents(client, execution, { backwards: true })) {
    if (idOf(event) <= last) break;
    events.push(event);
  }
  return events.reverse();
}

let warned = false;

function warnOnce(): void {
  if (warned) return;
  warned = true;
  process.emitWarning(
    'More sessions are followed than the server keeps long polls for: some are looked at every two seconds',
    { type: 'PerdureWarning' },
  );
}

function idOf({ eventId }: HistoryEvent): number {
  return Number(eventId);
}
