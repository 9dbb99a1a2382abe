/** Whether a worker's shutdown, and not the session, has ended a call. */
import type { Context } from '@temporalio/activity';
import { CancelledFailure } from '@temporalio/common';

/** Whether the worker was shut down, and its grace has passed, while the call ran. */
export function shutDown({ cancellationSignal: { aborted, reason } }: Context): boolean {
  // The SDK documents this reason.
  return aborted && reason instanceof CancelledFailure && reason.message === 'WORKER_SHUTDOWN';
}
