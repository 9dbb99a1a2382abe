import { ApplicationFailure } from '@temporalio/workflow';
import type { ErrorCode } from '../contract/errors.ts';

/** An error with a code as it goes over the wire. The client turns it back into a `PerdureError`. */
export function failure(error: {
  code: ErrorCode;
  message: string;
  details?: Readonly<Record<string, unknown>>;
}): ApplicationFailure {
  const { code, message, details } = error;
  return ApplicationFailure.nonRetryable(message, code, ...(details === undefined ? [] : [details]));
}
