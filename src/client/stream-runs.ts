/** Where a stream begins: a cursor, and the run that it is in. */
import type { Client } from '@temporalio/client';
import { invalid, PerdureError } from '../contract/errors.ts';
import { runsUpTo } from '../temporal/executions.ts';
import { orNull, readEvents, readStart } from '../temporal/index.ts';

/** A place in the history: after `index` parts of the workflow task whose completion is event `eventId`. */
export interface Cursor {
  runId: string;
  eventId: number;
  index: number;
}

/** Reads a cursor. The id of a checkpoint is one, too: after all parts of its task. @throws PerdureError `INVALID_ARGUMENT` */
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
    const before = start?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
    if (!before) throw notFound(id, since, 'the session was rewound or reset to a point before it');
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

/** The cursor of the present: after the last completed workflow task of the session's run. */
export async function presentCursor(client: Client, id: string, runId: string): Promise<string> {
  for await (const event of readEvents(client, { workflowId: id, runId }, { backwards: true })) {
    if (event.workflowTaskCompletedEventAttributes) return `${runId}:${Number(event.eventId)}`;
  }
  return `${runId}:1`;
}
