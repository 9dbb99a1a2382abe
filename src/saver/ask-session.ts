/** The latest checkpoint of a running session, as the session itself has it. */
import type { Client } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';
import proto from '@temporalio/proto';
import { QUERY } from '../contract/names.ts';
import type { LiveCheckpoint, TooLarge } from '../contract/views.ts';
import {
  begun,
  bringsInput,
  type FoldedTask,
  firstJson,
  type HistoryEvent,
  isTaken,
  readPages,
} from '../history/index.ts';
import type { Execution } from './wire.ts';

const { EventType } = proto.temporal.api.enums.v1;
/** How long a session may take to answer, in milliseconds: a worker that is well takes a few. */
const ANSWER_MS = 2_000;
/** Events that are looked at for the task of the answer and the one before it. */
const FEW = 500;

/** The latest completed task as a session has answered it. */
export interface LiveTask {
  task: FoldedTask;
  /** The event that completed the task before it; `null` for the first of its run. */
  previous: number | null;
  /** Of the answer. */
  bytes: number;
}

type Answer = NonNullable<LiveCheckpoint>;
type Pages = AsyncIterable<readonly HistoryEvent[]>;

/**
 * Asks a running session for its state, and finds the checkpoint in the history that it is the state of. One that is at
 * work on a task is not asked: the answer would wait for the end of the task, and the SDK for that of the question.
 *
 * @returns `null` when it is at work, when nobody answers in time, when a query cannot carry the answer or nothing is known of its kind,
 * and when the history does not show for certain which checkpoint it is: then the history has to be folded.
 */
export async function askSession(client: Client, session: Execution): Promise<LiveTask | null> {
  const { workflowId, runId, running, busy } = session;
  if (!running || busy) return null;
  const newest = (): AsyncGenerator<readonly HistoryEvent[]> =>
    readPages(client, { workflowId, runId }, { backwards: true });
  const meanwhile = begun(newest());
  const answer = await ask(client, session);
  if (answer === null) return null;
  const { state, task, bytes } = answer;
  if (state.schema !== 1 || state.sessionId !== workflowId || state.runId !== runId) return null;
  // What was read meanwhile may be older than the answer.
  const found = (await findTask(meanwhile, task)) ?? (await findTask(newest(), task));
  if (found === null) return null;
  const { eventId, at, previous } = found;
  return { task: { eventId, at: new Date(at).toISOString(), state }, previous, bytes };
}

async function ask(
  client: Client,
  { workflowId, runId }: Execution,
): Promise<(Answer & { bytes: number }) | null> {
  const { namespace, loadedDataConverter } = client.options;
  const execution = { workflowId, runId };
  try {
    const { queryResult } = await client.withDeadline(Date.now() + ANSWER_MS, () =>
      client.workflowService.queryWorkflow({ namespace, execution, query: { queryType: QUERY.checkpoint } }),
    );
    const answer = (await firstJson(loadedDataConverter, queryResult)) as LiveCheckpoint | TooLarge;
    if (answer === null || !('state' in answer)) return null;
    return { ...answer, bytes: queryResult?.payloads?.[0]?.data?.length ?? 0 };
  } catch {
    // No worker, an older one, a query at a bad moment: the history says it, or says what is wrong.
    return null;
  }
}

interface Found {
  eventId: number;
  at: number;
  previous: number | null;
}

/**
 * The task of an answer, once it has completed; or the last after it, if none of those in between brought the session
 * anything: their checkpoints have the same state. Newer ones that did were not there when the session was asked.
 *
 * @param pages - events, newest first
 */
export async function findTask(pages: Pages, { startedEvent, at }: Answer['task']): Promise<Found | null> {
  const after: HistoryEvent[] = [];
  let made = 0;
  let seen = 0;
  for await (const page of pages) {
    for (const event of page) {
      const eventId = Number(event.eventId);
      const completed = event.workflowTaskCompletedEventAttributes;
      if (made > 0) {
        // A task that is tried again may have the numbers of one that was lost, and not its time.
        if (eventId === startedEvent && tsToMs(event.eventTime) !== at) return null;
        if (completed) return lastWithIt({ eventId: made, at, previous: eventId }, after);
      } else if (Number(completed?.startedEventId ?? 0) === startedEvent) {
        made = eventId;
      } else if (eventId <= startedEvent) {
        return null;
      } else {
        after.push(event);
      }
    }
    seen += page.length;
    if (seen > FEW) return null;
  }
  return made === 0 ? null : lastWithIt({ eventId: made, at, previous: null }, after);
}

/** Goes on from a task over those that brought nothing; `after` are the events after it, newest first. */
function lastWithIt(made: Found, after: readonly HistoryEvent[]): Found {
  let last = made;
  let before = made;
  let started = 0;
  for (const event of after.toReversed()) {
    if (event.eventType === EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED) started = tsToMs(event.eventTime);
    if (event.workflowTaskCompletedEventAttributes) {
      before = last;
      last = { eventId: Number(event.eventId), at: Math.max(last.at, started), previous: last.eventId };
    } else if (isTaken(event)) {
      // Written with the task that took it, which has completed just before.
      if (last !== made) return before;
    } else if (bringsInput(event)) {
      return last;
    }
  }
  return last;
}
