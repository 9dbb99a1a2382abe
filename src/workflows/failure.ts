import { ApplicationFailure } from '@temporalio/workflow';
import type { ErrorCode } from '../contract/errors.ts';

/** Converts an error with a code to a failure. The client turns the failure back into a `PerdureError`. */
export function failure(error: {
  code: ErrorCode;
  message: string;
  details?: Readonly<Record<string, unknown>>;
}): ApplicationFailure {
  const { code, message, details } = error;
  return ApplicationFailure.nonRetryable(message, code, ...(details === undefined ? [] : [details]));
}
