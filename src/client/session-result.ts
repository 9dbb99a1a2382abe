/** What a session returns, over the runs that continue it. */
import {
  type Client,
  TerminatedFailure,
  TimeoutFailure,
  WorkflowContinuedAsNewError,
  WorkflowFailedError,
} from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import { describeSession } from './read-session.ts';
import { successorOf } from './stream-runs.ts';

/**
 * Waits for the result of a session, also when it is rewound or reset meanwhile.
 *
 * @param only - a run that is asked without its successors by a rewind or a reset.
 * @throws PerdureError `SESSION_CLOSED` when it was ended from outside; what its workflow failed with
 */
export async function sessionResult(client: Client, id: string, only: string | undefined): Promise<unknown> {
  for (let runId = only ?? (await describeSession(client, id)).runId; ; ) {
    try {
      return await client.workflow.getHandle(id, runId, { followRuns: false }).result();
    } catch (error) {
      runId = await runAfter(client, { id, runId, isOnly: only !== undefined }, error);
    }
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
