/** How the previous attempt of an activity ended, and when Temporal must stop retrying. */
import type { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { isPerdureError } from '../contract/errors.ts';
import { UNKNOWN_KEY } from '../contract/failure.ts';
import { activityContext, failureMessage } from '../temporal/payloads.ts';

/** The failure type of an attempt that could not use the store of values. Retries succeed once the store is back. */
const NO_STORE = 'ValuesUnavailable';

interface LastFailure {
  /** Absent for a time-out or a lost worker. */
  type?: string;
  message: string;
}

/** How the previous attempt ended, or `null` when there was none. @throws Temporal's `ServiceError` */
export async function lastFailure({ client, info }: Context): Promise<LastFailure | null> {
  const { workflowId, runId } = info.workflowExecution ?? { workflowId: '', runId: '' };
  const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
  const failure = raw.pendingActivities?.find(
    ({ activityId }) => activityId === info.activityId,
  )?.lastFailure;
  if (!failure) return null;
  const { loadedDataConverter, namespace } = client.options;
  const context = activityContext(namespace, workflowId, info.activityId);
  const type = failure.applicationFailureInfo?.type;
  return {
    ...(type ? { type } : {}),
    message: await failureMessage({ loadedDataConverter, namespace }, failure, context),
  };
}

/**
 * Runs one attempt of an activity that Temporal retries without limit. While a key is missing or the store of values is
 * down, retries go on, and `perdure show` reports why. Any other failure, also the loss of a worker, ends the activity
 * after `most` attempts.
 */
export async function attempted<T>(context: Context, run: () => Promise<T>, most = 5): Promise<T> {
  const { attempt } = context.info;
  if (attempt > most) {
    const last = await lastFailure(context);
    if (last !== null && last.type !== UNKNOWN_KEY && last.type !== NO_STORE)
      throw ApplicationFailure.nonRetryable(last.message, last.type);
  }
  try {
    return await run();
  } catch (error) {
    if (isPerdureError(error, 'UNKNOWN_KEY')) throw ApplicationFailure.retryable(error.message, UNKNOWN_KEY);
    if (isPerdureError(error, 'SERVER_UNAVAILABLE'))
      throw ApplicationFailure.retryable(error.message, NO_STORE);
    const stopped = context.cancellationSignal.aborted;
    if (attempt < most || stopped || !(error instanceof Error)) throw error;
    throw ApplicationFailure.nonRetryable(error.message, error.name);
  }
}
