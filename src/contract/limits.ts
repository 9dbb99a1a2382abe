/**
 * One measure for size, before every wire.
 *
 * Temporal does not refuse what is too large, it ends the workflow or resends for ever. Every boundary
 * (client, update validator, activity return, heartbeat) measures with {@link jsonSize} against these.
 */
import { PerdureError } from './errors.ts';
import { jsonSize } from './json.ts';

/** Limits in bytes of JSON, unless the name says otherwise. */
export const LIMIT = {
  /** What a person says: a session's first message, a signal. */
  input: 1_000_000,
  /**
   * One update. A server hands ten to a workflow task at once, by default, and the task's completion repeats their
   * requests: beyond 4 MB in all it cannot be sent, and the workflow would not go on.
   */
  update: 380_000,
  /** One tool result as it enters the history; what is larger is shortened with a notice. */
  toolResult: 256_000,
  /** All results of one model reply's calls, which become one message: each call gets an equal share. */
  turnResults: 1_200_000,
  /**
   * The message with all results of a reply, up to which one activity reads and then asks the model: with a cap on
   * tokens or dollars, for its bytes are held in reserve, and without.
   */
  readResults: { capped: 16_000, free: 64_000 },
  /** Results of reads that heartbeats keep over their worker's death. What is larger is read again. */
  keptReads: 8_192,
  /** Calls in one model reply, a number and not bytes; a reply with more is refused as an invalid one. */
  replyCalls: 128,
  /** One model reply as it enters the history; what is larger is refused as an invalid reply. */
  modelReply: 1_000_000,
  /** An agent's manifest. */
  manifest: 1_000_000,
  /** The live text that one heartbeat carries. */
  liveText: 8_192,
  /** The context of a session. It is in the history with each call. */
  context: 8_192,
  /** A query's answer: Temporal's own limit is 2 MB. */
  queryResult: 1_800_000,
  /**
   * Events of one run at which the session stops in a waiting state. Temporal's own limit is 51,200; a replay
   * must also stay well below the workflow task's time-out, which is low so that recovery is fast.
   */
  historyEvents: 15_000,
  /**
   * Bytes of one run's history at which the session stops in a waiting state. Temporal's own limit is 50 MB, but
   * a replay costs 50 ms of processor a megabyte and must stay well below a workflow task's 2 seconds.
   */
  historyBytes: 12_000_000,
  /** Characters of a session id. */
  sessionId: 200,
} as const;

/**
 * Refuses a value that is too large for the wire.
 *
 * @throws PerdureError `TOO_LARGE` with the field, its size and the limit in bytes.
 */
export function assertSize(field: string, value: unknown, limit: number): void {
  const size = jsonSize(value);
  if (size > limit) throw tooLarge(field, size, limit);
}

/** The error of a value over its limit. */
export function tooLarge(field: string, size: number, limit: number): PerdureError {
  return new PerdureError(
    'TOO_LARGE',
    `${field} is ${size} bytes of JSON, the limit is ${limit}. Shorten it, or store it elsewhere and pass a reference.`,
    { details: { field, size, limit } },
  );
}
