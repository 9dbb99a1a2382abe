import type { CarriedEffect } from './origin.ts';
import type { SessionState, Spent } from './state.ts';

/** What a client has read of an origin whose history the server has no more. */
export interface ArchivedOrigin {
  /** The state at the checkpoint. */
  past: SessionState;
  /** Of a rewind of a session that is gone from the server as a whole: the last state that is known. */
  last: SessionState | null;
}

/** What a session is given of its origin. */
export interface Loaded {
  /** The state at the checkpoint. */
  state: SessionState;
  /** Of a rewind: what happened after it, how its open calls ended, and what had been spent in the end. */
  after: {
    effects: CarriedEffect[];
    /** Calls that were open at the checkpoint, by id, as they ended; `null` when nobody knows. */
    ended: { [callId: string]: 'absent' | null };
    spent: Spent;
    /** The highest number that a message of the user was given. */
    messagesTaken: number;
  } | null;
}
