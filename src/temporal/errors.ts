import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import {
  ERROR_CODES,
  type ErrorCode,
  isPerdureError,
  isUnanswered,
  PerdureError,
} from '../contract/errors.ts';
import { GRPC } from './grpc.ts';
import { isUnknownEncoding } from './payloads.ts';
import { saysClosed, saysUpdateLimit, UPDATE_FAILURE } from './sdk-internals.ts';

/**
 * Adds to the error of an unanswered request that it may have been carried out, and how to repeat it. A request that
 * the server has dropped was not carried out.
 *
 * @param advice - a sentence without its full stop.
 */
export function retryHint(error: unknown, advice: string, details: Record<string, unknown>): unknown {
  const unanswered = isPerdureError(error, 'SERVER_UNAVAILABLE') || isUnanswered(error);
  if (!unanswered || isUnprocessed(error.cause)) return error;
  const { code, message, cause } = error;
  return new PerdureError(code, `${message}. ${advice}`, {
    details: { ...error.details, ...details },
    cause,
  });
}

/** The code and message of a failed request, by the cause of the failure. */
type ErrorMessages = Record<
  'closed' | 'missing' | 'dropped' | 'overtaken' | 'late' | 'full' | 'silent',
  [code: ErrorCode, message: string]
>;

const ofSession = (id: string): ErrorMessages => ({
  closed: ['SESSION_CLOSED', `Session ${id} is closed. Start a new one`],
  missing: ['SESSION_NOT_FOUND', `There is no session ${id}`],
  dropped: [
    'NO_WORKER',
    `No worker received the request to session ${id}; it had no effect. Try again, or start a worker: perdure worker <module>`,
  ],
  overtaken: [
    'CONFLICT',
    `Session ${id} was ended or rewound before it answered. Read its state before you try again`,
  ],
  late: [
    'NO_WORKER',
    `No worker answered for session ${id} in time; the request may still take effect. ` +
      'Read its state before you try again, or start a worker: perdure worker <module>',
  ],
  full: [
    'SESSION_FULL',
    `Session ${id} has received as many updates as the server allows in one run. Nothing is lost. ` +
      'Rewind it to its latest checkpoint, or fork it',
  ],
  silent: ['NO_WORKER', `No worker answered for session ${id}. Start one: perdure worker <module>`],
});

const ofThread = (id: string): ErrorMessages => {
  const deleted: ErrorMessages['closed'] = [
    'CONFLICT',
    `Thread ${id} was deleted before it answered. Try again: a write starts it anew`,
  ];
  return {
    closed: deleted,
    missing: deleted,
    overtaken: deleted,
    dropped: [
      'NO_WORKER',
      `No worker received the request to thread ${id}; it had no effect. Try again, or start a worker on the saver's task queue: perdure worker <module>`,
    ],
    late: [
      'NO_WORKER',
      `No worker answered for thread ${id} in time; the request may still take effect. Try again (a put with the same id), ` +
        "or start a worker on the saver's task queue: perdure worker <module>",
    ],
    full: [
      'NO_WORKER',
      `Thread ${id} has received as many updates as the server allows in one run. A worker will continue it in a new run. ` +
        'Try again, or start a worker: perdure worker <module>',
    ],
    silent: [
      'NO_WORKER',
      `No worker answered for thread ${id}. Start a worker on the saver's task queue: perdure worker <module>`,
    ],
  };
};

const ofPool = (id: string): ErrorMessages => {
  const missing: ErrorMessages['missing'] = [
    'POOL_NOT_FOUND',
    `There is no pool ${id}, or it was ended. Set its caps: perdure pool ${id} --usd 10`,
  ];
  const silent: ErrorMessages['silent'] = [
    'NO_WORKER',
    `No worker answered for pool ${id} in time. Try again, or start a worker on its task queue: perdure worker <module>`,
  ];
  return { closed: missing, missing, overtaken: silent, dropped: silent, late: silent, full: silent, silent };
};

/** Converts what Temporal's client throws for a pool. */
export function poolError(poolId: string, error: unknown): unknown {
  return codedError(poolId, ofPool(poolId), error);
}

/** Converts what Temporal's client throws for a session into a PerdureError. Other errors are returned unchanged. */
export function sessionError(sessionId: string, error: unknown): unknown {
  return codedError(sessionId, ofSession(sessionId), error);
}

/** The same for a thread of checkpoints. */
export function threadError(threadId: string, error: unknown): unknown {
  return codedError(threadId, ofThread(threadId), error);
}

/** The same for requests that the server answers without a worker. */
export function readError(id: string, error: unknown): unknown {
  const silent: ErrorMessages['silent'] = [
    'SERVER_UNAVAILABLE',
    `The Temporal server did not answer for ${id} in time. Try again`,
  ];
  return codedError(id, { ...ofThread(id), silent }, error);
}

/** The error of a client without the codec of a session or thread. */
export function encryptedError(id: string, cause?: unknown): PerdureError {
  return new PerdureError(
    'ENCRYPTED',
    `${id} is encrypted, and this client has no codec for it. Create the client with the dataConverter of the workers; for commands: --data-converter <module>`,
    { details: { id }, cause },
  );
}

/** The SDK's message of a failure that a codec has encrypted. */
const ENCODED = 'Encoded failure';

function codedError(id: string, messages: ErrorMessages, error: unknown): unknown {
  if (isPerdureError(error)) return error;
  if (isUnknownEncoding(error)) return encryptedError(id, error);
  const make = (which: keyof ErrorMessages): PerdureError => {
    const [code, message] = messages[which];
    return new PerdureError(code, message, { cause: error });
  };
  if (error instanceof WorkflowNotFoundError) return make(saysClosed(error.message) ? 'closed' : 'missing');
  if (isUnprocessed(error)) return make('dropped');
  if (typeOf(error) === UPDATE_FAILURE.overtaken) return make('overtaken');
  const typed = withCode(error instanceof WorkflowUpdateFailedError ? error.cause : error);
  if (typed !== undefined) {
    const { type, message, details } = typed;
    return new PerdureError(type, message, { details, cause: error });
  }
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return make('late');
  const code = grpcCode(error);
  if (code === GRPC.unavailable) {
    const message = 'The Temporal server cannot be reached. Start one: perdure dev';
    return new PerdureError('SERVER_UNAVAILABLE', message, { cause: error });
  }
  if (code === GRPC.invalidArgument && (error as Error).message.includes(ENCODED)) {
    const message = `A worker failed to answer for ${id}, and its error is encrypted. It may lack an encryption key: read its log`;
    return new PerdureError('TASK_FAILING', message, { cause: error });
  }
  if (code === GRPC.invalidArgument) {
    const message = `The server refused the request: ${(error as Error).message}`;
    return new PerdureError('INVALID_ARGUMENT', message, { cause: error });
  }
  if (code === GRPC.failedPrecondition && [...causes(error)].some(({ message }) => saysUpdateLimit(message)))
    return make('full');
  if (code === GRPC.deadlineExceeded || code === GRPC.failedPrecondition || code === GRPC.cancelled)
    return make('silent');
  return error;
}

/** Whether the server dropped an update because its workflow task ended without an answer. It can be sent again. */
export function isUnprocessed(error: unknown): boolean {
  return typeOf(error) === UPDATE_FAILURE.unprocessed;
}

/** Whether a session is just moving to a new run. The new run takes the request when it is sent again. */
export function isContinuing(error: unknown): boolean {
  const typed = withCode(error instanceof WorkflowUpdateFailedError ? error.cause : error);
  return typed?.type === 'SESSION_BUSY' && typed.details['continuing'] === true;
}

/** The type of a failed update's cause. */
function typeOf(error: unknown): unknown {
  return error instanceof WorkflowUpdateFailedError
    ? (error.cause as { type?: unknown } | undefined)?.type
    : undefined;
}

/** The gRPC status of an error or of one of its causes. */
function grpcCode(error: unknown): number | undefined {
  for (const at of causes(error)) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'number') return code;
  }
  return undefined;
}

/** An error and its causes. */
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
      details: typeof first === 'object' && first !== null ? { ...first } : {},
    };
  }
  return undefined;
}
