/**
 * One measure for size, before every wire. When something is too large, Temporal ends the workflow or resends for ever.
 * So every boundary (client, update validator, activity result, heartbeat) checks {@link jsonSize} against these
 * limits.
 */
import { PerdureError } from './errors.ts';
import { jsonSize } from './json.ts';

/** Limits in bytes of JSON, unless the name says otherwise. */
export const LIMIT = {
  /** A first message, a signal. */
  input: 1_000_000,
  /** One update. The server delivers ten at a time, and the task's completion must repeat them within 4 MB. */
  update: 380_000,
  /** One tool result. Larger ones are shortened with a notice. */
  toolResult: 256_000,
  /** A question that a tool asks in the middle of a call, and its answer. A call holds ten of each. */
  question: 32_000,
  /** One file of a message, in bytes. */
  file: 50_000_000,
  /** One tool result when the worker has a store of values. Larger ones are stored. */
  inlineResult: 64_000,
  /** What the history keeps of a stored result: its beginning and its end. */
  storedHead: 700,
  storedTail: 300,
  /** All results of one model reply. Each call gets an equal share. */
  turnResults: 1_200_000,
  /**
   * Results of reads up to which the same activity also asks the model: with a cap on tokens or dollars, and without.
   */
  readResults: { capped: 16_000, free: 64_000 },
  /** Results of reads that a heartbeat keeps in case the worker dies. Reads whose results do not fit run again. */
  keptReads: 8_192,
  /** The number of calls in one model reply. A reply with more is invalid. */
  replyCalls: 128,
  /** One model reply. A larger one is invalid. */
  modelReply: 1_000_000,
  /** An agent's manifest. */
  manifest: 1_000_000,
  /** The live text of one heartbeat. */
  liveText: 8_192,
  /** The context of a session. It is in the history with each call. */
  context: 8_192,
  /** The answer of a query. Temporal's limit is 2 MB. */
  queryResult: 1_800_000,
  /** Events of one run at which the session waits. Temporal's limit is 51,200, but a replay must stay fast. */
  historyEvents: 15_000,
  /**
   * Bytes of one run's history at which the session waits. A replay takes 50 ms a megabyte and must fit into
   * {@link TASK_TIMEOUT}.
   */
  historyBytes: 12_000_000,
  /** Bytes of one run's history at which a session continues in a new run, if it may. */
  runBytes: 1_000_000,
  /** The same in events. Each accepted update adds two, and a run takes at most 2,000 updates. */
  runEvents: 3_000,
  /** Bytes of the state that a run passes to the next. Temporal's limit for an input is 2 MB. */
  carriedState: 1_500_000,
  /** Bytes of the last message above which a session waits for a smaller one before it continues in a new run. */
  carriedMessage: 64_000,
  /** Characters of a session id. */
  sessionId: 200,
} as const;

/**
 * The default time-out of a session's workflow tasks. When a worker freezes, two tasks may time out before another
 * worker gets one.
 */
export const TASK_TIMEOUT = '3.5s';

/** Bytes that the message with all results may have, if the same activity asks the model after the reads. */
export function resultBytesOf(first: { ended?: readonly object[]; resultBytes?: number }): number {
  return first.resultBytes ?? jsonSize(first.ended ?? []) + LIMIT.readResults.free;
}

/** @throws PerdureError `TOO_LARGE` with the field, its size and the limit in bytes */
export function assertSize(field: string, value: unknown, limit: number): void {
  const size = jsonSize(value);
  if (size > limit) throw tooLarge(field, size, limit);
}

export function tooLarge(field: string, size: number, limit: number): PerdureError {
  return new PerdureError(
    'TOO_LARGE',
    `${field} is ${size} bytes of JSON, the limit is ${limit}. Shorten it, or store it elsewhere and pass a reference.`,
    { details: { field, size, limit } },
  );
}
