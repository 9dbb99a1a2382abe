import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ERROR_CODES, type ErrorCode, isPerdureError, PerdureError } from '../contract/errors.ts';
import type { InputProblem } from '../contract/inputs.ts';

const GRPC = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  failedPrecondition: 9,
  unavailable: 14,
  cancelled: 1,
} as const;

/** The error of an input that is not as it should be. */
export function invalidInput({ field, message }: InputProblem): PerdureError {
  return new PerdureError('INVALID_ARGUMENT', message, { details: { field } });
}

/** Turns what Temporal's client throws into an error with a code and the next command; others pass as they are. */
export function sessionError(sessionId: string, error: unknown): unknown {
  if (isPerdureError(error)) return error;
  if (error instanceof WorkflowNotFoundError) {
    const closed = /already completed/i.test(error.message);
    return closed
      ? new PerdureError('SESSION_CLOSED', `Session ${sessionId} is closed. Start a new one: perdure start`, {
          cause: error,
        })
      : new PerdureError('SESSION_NOT_FOUND', `There is no session ${sessionId}. List them: perdure ls`, {
          cause: error,
        });
  }
  if (isUnprocessed(error)) {
    return new PerdureError(
      'NO_WORKER',
      `No worker has looked at what was asked of session ${sessionId}, and it was not done. Ask again, or start one: perdure worker <module>`,
      { cause: error },
    );
  }
  if (typeOf(error) === 'AcceptedUpdateCompletedWorkflow') {
    return new PerdureError(
      'CONFLICT',
      `Session ${sessionId} was ended or taken back before it had answered. Look what it has on record: perdure show ${sessionId}`,
      { cause: error },
    );
  }
  const typed = withCode(error instanceof WorkflowUpdateFailedError ? error.cause : error);
  if (typed !== undefined) {
    const { type, message, details } = typed;
    return new PerdureError(type, message, { details, cause: error });
  }
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
    return new PerdureError(
      'NO_WORKER',
      `No worker answered for session ${sessionId} in time; what was asked may still be done. ` +
        `Look first: perdure show ${sessionId}, or start a worker: perdure worker <module>`,
      { cause: error },
    );
  }
  const code = grpcCode(error);
  if (code === GRPC.unavailable) {
    const message = 'The Temporal server cannot be reached. Start one: perdure dev';
    return new PerdureError('SERVER_UNAVAILABLE', message, { cause: error });
  }
  if (code === GRPC.invalidArgument) {
    const message = `The server refused the request: ${(error as Error).message}`;
    return new PerdureError('INVALID_ARGUMENT', message, { cause: error });
  }
  if (code === GRPC.failedPrecondition && isOfUpdateLimit(error)) {
    const message =
      `session ${sessionId} has taken as many updates as the server allows for one. It keeps all that it has. ` +
      `Start a new session for further work, and end this one: perdure cancel ${sessionId}`;
    return new PerdureError('SESSION_FULL', message, { cause: error });
  }
  if (code === GRPC.deadlineExceeded || code === GRPC.failedPrecondition || code === GRPC.cancelled) {
    const message = `No worker answered for session ${sessionId}. Start one: perdure worker <module>`;
    return new PerdureError('NO_WORKER', message, { cause: error });
  }
  return error;
}

/**
 * Whether an update was in a workflow task that ended without a word on it, as when its worker is lost or wakes
 * late. The server has dropped it: nothing was done, and it may be sent again.
 */
export function isUnprocessed(error: unknown): boolean {
  return typeOf(error) === 'UnprocessedUpdate';
}

/** What the server or the workflow says of an update that failed. */
function typeOf(error: unknown): unknown {
  return error instanceof WorkflowUpdateFailedError
    ? (error.cause as { type?: unknown } | undefined)?.type
    : undefined;
}

/** Whether the server has refused an update because its workflow has had too many; it says so in words only. */
function isOfUpdateLimit(error: unknown): boolean {
  return [...causes(error)].some(({ message }) => /total number of distinct updates/.test(message));
}

/** The gRPC status of an error, or of what Temporal's client has wrapped in it. */
function grpcCode(error: unknown): number | undefined {
  for (const at of causes(error)) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'number') return code;
  }
  return undefined;
}

/** An error and what has caused it. */
function* causes(error: unknown): Generator<Error> {
  for (let at: unknown = error; at instanceof Error; at = at.cause) yield at;
}

function withCode(
  error: unknown,
): { type: ErrorCode; message: string; details: Record<string, unknown> } | undefined {
  for (
    let at: unknown = error;
    typeof at === 'object' && at !== null;
    at = (at as { cause?: unknown }).cause
  ) {
    const { type, message, details } = at as { type?: unknown; message?: unknown; details?: unknown };
    const code = ERROR_CODES.find((known) => known === type);
    if (code === undefined) continue;
    const first: unknown = Array.isArray(details) ? details[0] : undefined;
    return {
      type: code,
      message: typeof message === 'string' ? message : code,
      // A worker of before sends none.
      details: typeof first === 'object' && first !== null ? { ...first } : {},
    };
  }
  return undefined;
}
