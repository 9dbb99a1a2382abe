/** Reads a session: from a worker, or from its history when no worker answers. */
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { isPerdureError, isUnanswered, PerdureError } from '../contract/errors.ts';
import { WORKFLOW } from '../contract/names.ts';
import type { Piece } from '../contract/piece.ts';
import type { SessionState } from '../contract/state.ts';
import type { Page, PageInput, RunPage, TooLarge } from '../contract/views.ts';
import { foldSession } from '../history/index.ts';
import { sessionError } from '../temporal/errors.ts';
import { entriesOf } from '../temporal/past.ts';
import { isPolled } from '../temporal/pollers.ts';

/** How long a worker may take at first, before it is asked whether the history can answer, in milliseconds. */
const LOOK_MS = 500;
/** How long a workflow task may wait before no worker is expected to take it, in milliseconds. */
const UNTAKEN_MS = 3_000;
/** How long a worker may take to answer, in milliseconds. */
const READ_MS = 8_000;
/** `PENDING_WORKFLOW_TASK_STATE_STARTED`. */
const STARTED = 2;

/**
 * Asks a worker, and reads the history when none answers. The history is as good as a worker's answer unless events
 * wait for a workflow task: then a worker that polls gets time to process them.
 *
 * Sends one query at a time, and leaves none behind: Temporal's client repeats a refused call from a timer, which ends
 * the process when the connection has been closed meanwhile.
 *
 * @param live - asks a worker; ends with `NO_WORKER` after the given milliseconds at the latest.
 * @param folded - makes the same answer from the state that the history gives.
 * @throws PerdureError `SESSION_NOT_FOUND`, `SERVER_UNAVAILABLE`, `CHECKPOINT_CORRUPTION`
 */
export async function readEither<T>(
  client: Client,
  { workflowId: id, runId }: { workflowId: string; runId?: string },
  live: (answerMs: number) => Promise<T>,
  folded: (state: SessionState, execution: WorkflowExecutionDescription) => T,
): Promise<T> {
  const since = performance.now();
  for (;;) {
    const before = performance.now() - since;
    let isFinal: boolean;
    try {
      return await live(Math.max(LOOK_MS, Math.min(before, READ_MS - before)));
    } catch (error) {
      if (!isReadable(error)) throw error;
      isFinal = !isUnanswered(error);
    }
    const execution = await describeSession(client, id, runId);
    const waited = performance.now() - since;
    if (isFinal || waited > READ_MS || !(await isAwaited(client, execution, waited)))
      return folded(await mapped(id, () => foldSession(client, id, execution.runId)), execution);
  }
}

/** Extends a page of the present run to a page of the whole session. */
export async function wholePage<K extends 'messages' | 'calls'>(
  client: Client,
  which: K,
  { limit = 50 }: PageInput,
  { past, ...page }: RunPage<Piece[K][number]>,
): Promise<Page<Piece[K][number]>> {
  if (past === undefined) return page;
  const first = Math.max(0, page.first + page.items.length - Math.max(0, limit));
  const older = await entriesOf(client, past, which, { first, end: page.first });
  return { ...page, first, items: [...older, ...page.items] };
}

/** Whether the history can be read instead after a query has failed with this error. */
function isReadable(error: unknown): boolean {
  return isUnanswered(error) || isPerdureError(error, 'TOO_LARGE') || isPerdureError(error, 'SESSION_CLOSED');
}

/** Whether a worker may still take events that the history's state lacks. */
async function isAwaited(
  client: Client,
  { status, raw, taskQueue }: Pick<WorkflowExecutionDescription, 'status' | 'raw' | 'taskQueue'>,
  waited: number,
): Promise<boolean> {
  const task = raw.pendingWorkflowTask;
  if (status.name !== 'RUNNING' || !task) return false;
  if (Number(task.state) !== STARTED && waited > UNTAKEN_MS) return false;
  return isPolled(client, taskQueue).catch(() => true);
}

/**
 * Temporal's description of a session: its present run, or the one named.
 *
 * @throws PerdureError `SESSION_NOT_FOUND`, `SERVER_UNAVAILABLE`
 */
export async function describeSession(
  client: Client,
  id: string,
  runId?: string,
): Promise<WorkflowExecutionDescription> {
  const execution = await mapped(id, () => client.workflow.getHandle(id, runId).describe());
  if (execution.type === WORKFLOW.session) return execution;
  throw new PerdureError('SESSION_NOT_FOUND', `${id} is a workflow of type ${execution.type}, not a session`);
}

async function mapped<T>(id: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw sessionError(id, error);
  }
}

/** Returns the answer of a query, unless it says that it is too large. @throws PerdureError `TOO_LARGE` */
export function fitting<T>(answer: T | TooLarge, name: string, sessionId: string): T {
  if (typeof answer !== 'object' || answer === null || !('tooLarge' in answer)) return answer;
  const { size, limit } = answer.tooLarge;
  throw new PerdureError(
    'TOO_LARGE',
    `${name} of session ${sessionId} is ${size} bytes of JSON, more than a query can return (${limit}). Read it with the checkpoint saver`,
    { details: { field: name, size, limit } },
  );
}
