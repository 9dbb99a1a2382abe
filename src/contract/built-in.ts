/** Tools that the session itself answers: no worker runs them. */

/** What the session does for a call of the tool. */
export type BuiltIn =
  /** Waits until a time, at most this far away. */
  | { kind: 'sleep'; maxMs: number }
  /** Sends the session a message at a time, at most this far away. */
  | { kind: 'reminder'; maxMs: number }
  | { kind: 'scratchpad'; verb: 'read' | 'write' | 'list' }
  /** Stops a sub-agent in the background. */
  | { kind: 'agent_stop' };

/** A message that the session will send itself. */
export interface Reminder {
  /** The id of the message. The session takes it once. */
  id: string;
  /** ISO 8601: when the session sends it. */
  at: string;
  text: string;
  /** ISO 8601: when the model asked for it. */
  setAt: string;
}

/** A call that waits for a time. */
export interface Sleeping {
  callId: string;
  /** A decision that ends the wait early must name this digest. */
  argsDigest: string;
  /** ISO 8601. */
  until: string;
  reason: string;
}

/** How many reminders may wait at once. */
export const REMINDERS = 50;

/** Limits of a scratchpad. */
export const SCRATCHPAD = { files: 50, fileBytes: 32_000, bytes: 128_000, path: 200 } as const;
