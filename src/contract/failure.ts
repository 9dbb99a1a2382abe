/** How activities fail. */

/** Why an activity ended without a result. The live session and the fold must derive the same text. */
export interface ActivityFailureInfo {
  /** `lost`: a successor has proof that the worker died. */
  kind: 'timeout' | 'cancelled' | 'failed' | 'lost';
  message: string;
  /** No heartbeat said that the tool of a mutation had begun: see {@link BEGAN}. */
  unbegun?: true;
  /** The worker could not decrypt the input, and has done nothing: see {@link UNKNOWN_KEY}. */
  unknownKey?: true;
}

/**
 * Heartbeat details of a mutation whose tool begins now. The worker sends them before it runs the tool, and waits for
 * the server's answer. For a first dispatch that the worker has just issued itself, they go with the next heartbeat
 * instead.
 */
export const BEGAN = 'began';

/** The failure types with which a successor fails a dead worker's activities. */
export const LOST = {
  /** Its tool had begun, its model may have been asked, or neither is known. */
  worker: 'WorkerLost',
  /** The tool of a mutation had not begun, or no model had been asked. */
  unbegun: 'WorkerLostBeforeCall',
} as const;

/** The failure type of a payload whose key the worker does not have. The activity has done nothing. */
export const UNKNOWN_KEY = 'UnknownEncryptionKey';

/** Marks a payload codec that encrypts. Workers with such a codec also encode their failure messages. */
export const ENCRYPTS: unique symbol = Symbol.for('perdure.encrypts');

/** The outcome of an activity: its result, or how it ended without one. */
export type ActivityOutcome<T> = { ok: true; value: T } | { ok: false; failure: ActivityFailureInfo };

interface ErrorLike {
  name?: string;
  message?: string;
  type?: string | null;
  timeoutType?: string;
  lastHeartbeatDetails?: unknown;
  cause?: unknown;
}

/**
 * Why an activity ended without a result. It reads failures by name, so that workflow and history give the same text.
 */
export function activityFailureInfo(error: unknown): ActivityFailureInfo {
  const outer = (error ?? {}) as ErrorLike;
  const inner = outer.name === 'ActivityFailure' ? ((outer.cause ?? {}) as ErrorLike) : outer;
  switch (inner.name) {
    case 'TimeoutFailure':
      return {
        kind: 'timeout',
        message: `timed out (${inner.timeoutType ?? 'unknown'})`,
        ...(inner.lastHeartbeatDetails === BEGAN ? {} : { unbegun: true }),
      };
    case 'CancelledFailure':
      return { kind: 'cancelled', message: 'cancelled' };
    default: {
      const type = inner.type ?? inner.name ?? 'Error';
      const message = `${type}: ${(inner.message ?? '').slice(0, 2_000)}`;
      if (type === UNKNOWN_KEY) return { kind: 'failed', message, unbegun: true, unknownKey: true };
      if (type === LOST.unbegun) return { kind: 'lost', message, unbegun: true };
      return { kind: type === LOST.worker ? 'lost' : 'failed', message };
    }
  }
}

/**
 * The message with which a query fails when its history has events ahead of their workflow task. The next query
 * succeeds. The SDK logs the message.
 */
export const ASK_AGAIN =
  'perdure: events came ahead of their workflow task. The worker loads the session again, and nothing is lost';
