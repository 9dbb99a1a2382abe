/**
 * The errors that Perdure throws at its callers. They cross realms (the workflow sandbox) and wires (Temporal
 * failures), so they are recognised by `code` and a brand, never by `instanceof` or their message. On the wire the code
 * is the `type` of an `ApplicationFailure`.
 */

/**
 * What to do about an error:
 * - `fix_input`: the same call can never succeed. Change what `message` names.
 * - `retry`: call again, with the same id where the call takes one.
 * - `wait`: call again when the session has come to rest, or a worker runs.
 * - `ask_person`: a person must look before anything is done again.
 */
export type Remedy = 'fix_input' | 'retry' | 'wait' | 'ask_person';

/** Every code a {@link PerdureError} can carry. Codes are stable: a message may change, its code does not. */
export const ERROR_CODES = [
  'INVALID_ARGUMENT',
  'INVALID_DEFINITION',
  'NOT_JSON',
  'TOO_LARGE',
  'SESSION_EXISTS',
  'SESSION_NOT_FOUND',
  'POOL_NOT_FOUND',
  'SESSION_CLOSED',
  'SESSION_BUSY',
  'SESSION_FULL',
  'UNKNOWN_AGENT',
  'UNKNOWN_CALL',
  'CALL_NOT_PENDING',
  'MESSAGE_NOT_QUEUED',
  'DIGEST_MISMATCH',
  'DISPATCH_MISMATCH',
  'INVALID_TOOL_INPUT',
  'CHECKPOINT_CORRUPTION',
  'SERVER_UNAVAILABLE',
  'NO_WORKER',
  'WORKER_BUSY',
  'WORKER_LOST',
  'REPLAY_SLOW',
  'TASK_FAILING',
  'FLOODED',
  'NOT_ATTEMPTED',
  'FENCED',
  'CONFLICT',
  'UNAUTHORIZED',
  'FORBIDDEN',
  'HOST_NOT_ALLOWED',
  'ROUTE_NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'UNSUPPORTED_MEDIA_TYPE',
  'CHECKPOINT_NOT_FOUND',
  'STEP_NOT_FOUND',
  'UNKNOWN_KEY',
  'ENCRYPTED',
  'VALUE_NOT_FOUND',
  'INTERNAL',
] as const;

/** One of {@link ERROR_CODES}. */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Every other code is `fix_input`. */
const REMEDIES: Partial<Record<ErrorCode, Remedy>> = {
  SESSION_BUSY: 'wait',
  DIGEST_MISMATCH: 'ask_person',
  DISPATCH_MISMATCH: 'ask_person',
  CHECKPOINT_CORRUPTION: 'ask_person',
  SERVER_UNAVAILABLE: 'retry',
  NO_WORKER: 'wait',
  WORKER_BUSY: 'wait',
  WORKER_LOST: 'wait',
  REPLAY_SLOW: 'wait',
  TASK_FAILING: 'ask_person',
  FLOODED: 'wait',
  NOT_ATTEMPTED: 'retry',
  FENCED: 'retry',
  FORBIDDEN: 'ask_person',
  CONFLICT: 'retry',
  UNKNOWN_KEY: 'ask_person',
  INTERNAL: 'ask_person',
};

/**
 * Why no worker answered in time: none polls, all are busy, one died, the replay is slow, the task fails, or a flood.
 */
export const UNANSWERED: readonly ErrorCode[] = [
  'NO_WORKER',
  'WORKER_BUSY',
  'WORKER_LOST',
  'REPLAY_SLOW',
  'TASK_FAILING',
  'FLOODED',
];

/** Whether no worker answered in time: see {@link UNANSWERED}. */
export function isUnanswered(error: unknown): error is PerdureError {
  return isPerdureError(error) && UNANSWERED.includes(error.code);
}

const BRAND = 'perdure.error';

/** An error with a stable {@link PerdureError.code | code}; `message` names the field and the next step. */
export class PerdureError extends Error {
  override readonly name: string = 'PerdureError';
  /** What went wrong, for programs. */
  readonly code: ErrorCode;
  /** More about the error as plain JSON: the field, the limit, the path of the value. */
  readonly details: Readonly<Record<string, unknown>>;
  /** Present on every PerdureError of any copy of this package, in any realm. */
  readonly brand: 'perdure.error' = BRAND;

  /** What to do about it. It follows from the code. */
  readonly remedy: Remedy;

  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.remedy = REMEDIES[code] ?? 'fix_input';
    this.details = options.details ?? {};
  }
}

/** Whether a value is a {@link PerdureError} of any realm, optionally of one code. */
export function isPerdureError(value: unknown, code?: ErrorCode): value is PerdureError {
  return (
    typeof value === 'object' &&
    value !== null &&
    (value as { brand?: unknown }).brand === BRAND &&
    (code === undefined || (value as PerdureError).code === code)
  );
}

/** The error for an invalid field. */
export function invalid(field: string, problem: string, cause?: unknown): PerdureError {
  return new PerdureError('INVALID_ARGUMENT', `${field}: ${problem}`, { details: { field }, cause });
}

/** The message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
