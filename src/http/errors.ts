/** Errors on the wire: one body, and one table from codes to HTTP statuses. */
import { type ErrorCode, isPerdureError } from '../contract/errors.ts';

/** The HTTP status of each code. */
export const STATUS: Readonly<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 400,
  NOT_JSON: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  HOST_NOT_ALLOWED: 403,
  ROUTE_NOT_FOUND: 404,
  SESSION_NOT_FOUND: 404,
  POOL_NOT_FOUND: 404,
  CHECKPOINT_NOT_FOUND: 404,
  STEP_NOT_FOUND: 404,
  VALUE_NOT_FOUND: 404,
  UNKNOWN_CALL: 404,
  METHOD_NOT_ALLOWED: 405,
  SESSION_EXISTS: 409,
  SESSION_CLOSED: 409,
  SESSION_BUSY: 409,
  SESSION_FULL: 409,
  CALL_NOT_PENDING: 409,
  MESSAGE_NOT_QUEUED: 409,
  DIGEST_MISMATCH: 409,
  DISPATCH_MISMATCH: 409,
  CONFLICT: 409,
  FENCED: 409,
  TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  UNKNOWN_AGENT: 422,
  INVALID_TOOL_INPUT: 422,
  INVALID_DEFINITION: 422,
  CHECKPOINT_CORRUPTION: 500,
  UNKNOWN_KEY: 500,
  ENCRYPTED: 500,
  NOT_ATTEMPTED: 500,
  INTERNAL: 500,
  SERVER_UNAVAILABLE: 503,
  NO_WORKER: 503,
  WORKER_BUSY: 503,
  WORKER_LOST: 503,
  REPLAY_SLOW: 503,
  TASK_FAILING: 503,
  FLOODED: 503,
};

/** The body of every error. */
export interface ErrorBody {
  error: { code: ErrorCode; message: string; details: Readonly<Record<string, unknown>> };
}

/** Converts a thrown value to an error body. Unknown errors become `INTERNAL` and carry no details. */
export function errorBody(error: unknown): ErrorBody {
  if (!isPerdureError(error)) {
    const message = 'An unexpected error. The operator of this server finds it in the log.';
    return { error: { code: 'INTERNAL', message, details: {} } };
  }
  const { code, message, details } = error;
  return { error: { code, message, details } };
}

/**
 * Reports an error that becomes `INTERNAL`, for its caller learns nothing about it.
 *
 * @param caller - aborted when the caller has gone. That aborts its request, which is not an error of the server.
 */
export function reportUnexpected(
  error: unknown,
  onError: ((error: unknown) => void) | undefined,
  caller?: AbortSignal,
): void {
  if (errorBody(error).error.code === 'INTERNAL' && caller?.aborted !== true) onError?.(error);
}

export function errorResponse(error: unknown, headers: Record<string, string> = {}): Response {
  const body = errorBody(error);
  return Response.json(body, { status: STATUS[body.error.code], headers });
}
