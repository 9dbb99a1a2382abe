/** Finds the runs that a stream follows: the run of its cursor, and the runs after it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { invalid, PerdureError } from '../contract/errors.ts';
import type { RunEnd } from '../history/index.ts';
import { runsUpTo } from '../temporal/executions.ts';
import {
  endReason,
  type HistoryEvent,
  orNull,
  previousRun,
  readEvents,
  readStart,
} from '../temporal/index.ts';
import { endedError, TAKEN_BACK } from './ended.ts';
import { describeSession } from './read-session.ts';
import type { RunCause } from './stream-parts.ts';
import type { Head } from './stream-subscription.ts';

/** How long the successor of a rewound run may take, in milliseconds. */
const SUCCESSOR_MS = 10_000;
const LOOK_MS = 50;

/** A place in the history: after `index` parts of the workflow task whose completion is event `eventId`. */
export interface Cursor {
  runId: string;
  eventId: number;
  index: number;
}

/** Reads a cursor. A checkpoint's id is one: after all parts of its task. @throws PerdureError `INVALID_ARGUMENT` */
export function parseCursor(text: string): Cursor {
  const [, runId, eventId, index] = /^([0-9a-f-]{36}):(\d{1,9})(?::(\d{1,9}))?$/.exec(text) ?? [];
  if (runId === undefined)
    throw invalid('since', `${text.slice(0, 80)} is no cursor. Pass the cursor of a part, or 'start'`);
  return { runId, eventId: Number(eventId), index: Number(index ?? Number.MAX_SAFE_INTEGER) };
}

/**
 * The first run that a stream reads.
 *
 * @param present - the session's run, and its last event
 * @throws PerdureError `CHECKPOINT_NOT_FOUND` when the session did not go on from the cursor's run
 */
export async function firstRun(
  client: Client,
  id: string,
  present: { runId: string; events: number },
  since: Cursor | 'start' | undefined,
): Promise<string> {
  if (since === undefined) return present.runId;
  if (since === 'start') return (await runsUpTo(client, id, present.runId))[0] ?? present.runId;
  const { runId: wanted, eventId } = since;
  if (wanted === present.runId) {
    if (eventId <= present.events) return wanted;
    throw notFound(id, since, `its run has no event ${eventId}`);
  }
  if ((await orNull(readStart(client, { workflowId: id, runId: wanted }))) === null) {
    const why = 'the server does not have its run: retention has removed it, or it is of another session';
    throw notFound(id, since, why);
  }
  for (let runId: string = present.runId; runId !== wanted; ) {
    const start = await orNull(readStart(client, { workflowId: id, runId }));
    const before = previousRun(start);
    if (before === null) throw notFound(id, since, 'the session was rewound or reset to a point before it');
    runId = before;
  }
  return wanted;
}

function notFound(id: string, { runId, eventId, index }: Cursor, why: string): PerdureError {
  const cursor = Number.isSafeInteger(index) ? `${runId}:${eventId}:${index}` : `${runId}:${eventId}`;
  return new PerdureError(
    'CHECKPOINT_NOT_FOUND',
    `since: session ${id} cannot be followed from ${cursor}: ${why}. Read its transcript again, and stream without since`,
    { details: { field: 'since', cursor } },
  );
}

/** The last event of a session at this moment. */
export async function presentHead(client: Client, id: string): Promise<Head> {
  const { runId, historyLength } = await describeSession(client, id);
  return { runId, events: historyLength };
}

/** The run that a run has continued as, by its last event. */
export function nextRun(events: readonly HistoryEvent[]): string {
  return events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? '';
}

/**
 * The run that has replaced this run: by a rewind, which begins it a moment later, or by a reset. `null`: the session
 * has ended.
 *
 * @throws PerdureError when a rewind began no run
 */
export async function successorOf(
  client: Client,
  id: string,
  { runId, end }: { runId: string; end: RunEnd },
): Promise<{ head: Head; cause: RunCause } | null> {
  const execution = { workflowId: id, runId };
  const isTakenBack = end === 'terminated' && (await endReason(client, execution)).startsWith(TAKEN_BACK);
  for (const deadline = Date.now() + SUCCESSOR_MS; ; ) {
    const head = await presentHead(client, id);
    if (head.runId !== runId && end === 'terminated')
      return { head, cause: isTakenBack ? 'rewound' : 'reset' };
    if (!isTakenBack) return null;
    if (Date.now() > deadline)
      throw await endedError(client, execution, new PerdureError('SESSION_CLOSED', ''));
    await delay(LOOK_MS);
  }
}

/** The cursor of the present: after the last completed workflow task of the session's run. */
export async function presentCursor(client: Client, id: string, runId: string): Promise<string> {
  for await (const event of readEvents(client, { workflowId: id, runId }, { backwards: true })) {
    if (event.workflowTaskCompletedEventAttributes) return `${runId}:${Number(event.eventId)}`;
  }
  return `${runId}:1`;
}
