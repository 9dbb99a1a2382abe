/** What a session returns, over the runs that continue it. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Client,
  TerminatedFailure,
  TimeoutFailure,
  WorkflowContinuedAsNewError,
  WorkflowFailedError,
  type WorkflowHandle,
} from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import { describeSession } from './read-session.ts';
import { successorOf } from './stream-runs.ts';

/** The first pause before a look at a waiting run, and the longest, in milliseconds. */
const LOOK_MS = { first: 2_000, most: 10_000 };

/**
 * Waits for the result of a session, also when it is rewound or reset meanwhile.
 *
 * @param only - a run that is asked without its successors by a rewind or a reset.
 * @throws PerdureError `SESSION_CLOSED` when it was ended from outside; what its workflow failed with
 */
export async function sessionResult(client: Client, id: string, only: string | undefined): Promise<unknown> {
  for (let runId = only ?? (await describeSession(client, id)).runId; ; ) {
    try {
      return await runResult(client.workflow.getHandle(id, runId, { followRuns: false }));
    } catch (error) {
      runId = await runAfter(client, { id, runId, isOnly: only !== undefined }, error);
    }
  }
}

/**
 * Waits for the result of a run. A busy server may drop the notice of an end that comes right after another event
 * (`dispatchHistoryEventNotification` of its event notifier): its long poll then returns up to 20 s late. So this also
 * looks at the run now and then.
 */
async function runResult(handle: WorkflowHandle): Promise<unknown> {
  const done = new AbortController();
  const seen = untilSeenClosed(handle, done.signal).then(() => handle.result());
  try {
    return await Promise.race([handle.result(), seen]);
  } finally {
    done.abort();
  }
}

/** Looks at a run until it has closed: at first often, because nobody waits long for a short session. */
async function untilSeenClosed(handle: WorkflowHandle, signal: AbortSignal): Promise<void> {
  const since = Date.now();
  for (;;) {
    const pause = Math.min(Math.max(LOOK_MS.first, (Date.now() - since) / 2), LOOK_MS.most);
    await delay(pause, undefined, { signal });
    // The poll tells of failures.
    const run = await handle.describe().catch(() => null);
    if (run !== null && run.status.name !== 'RUNNING') return;
  }
}

/** The run that goes on after one without a result. @throws when there is none */
async function runAfter(
  client: Client,
  { id, runId, isOnly }: { id: string; runId: string; isOnly: boolean },
  error: unknown,
): Promise<string> {
  if (error instanceof WorkflowContinuedAsNewError) return error.newExecutionRunId;
  if (!(error instanceof WorkflowFailedError)) throw error;
  const { cause } = error;
  if (cause instanceof TerminatedFailure) {
    const successor = isOnly ? null : await successorOf(client, id, { runId, end: 'terminated' });
    if (successor !== null) return successor.head.runId;
    throw closed(`Session ${id} was terminated: ${cause.message}`, error);
  }
  if (cause instanceof TimeoutFailure) throw closed(`Session ${id} has timed out in Temporal`, error);
  throw error;
}

function closed(message: string, cause: unknown): PerdureError {
  return new PerdureError('SESSION_CLOSED', message, { cause });
}
