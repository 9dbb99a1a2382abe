import type { Manifest } from './manifest.ts';
import type { CarriedEffect } from './origin.ts';
import type { PoolShare } from './pool.ts';
import type { SessionState, Spent } from './state.ts';
import type { KeyedStep } from './undo.ts';

/** The states of an origin whose history the server no longer has, as the client read them. */
export interface ArchivedOrigin {
  /** The state at the checkpoint. */
  past: SessionState;
  /** The last known state, when a rewind's session is gone from the server. */
  last: SessionState | null;
}

/** What a session loads from its origin. */
export interface Loaded {
  /** The state at the checkpoint. */
  state: SessionState;
  /** Rewind only: what happened after the checkpoint, how its open calls ended, and what has been spent. */
  after: {
    effects: CarriedEffect[];
    /** How the calls that were open at the checkpoint ended, by id. `null` when nobody knows. */
    ended: { [callId: string]: 'absent' | null };
    spent: Spent;
    /** The share of a pool that the session has. */
    pool?: PoolShare;
    /** The effects since the checkpoint, the last one first, and the definition whose tools undo these effects. */
    undo?: { steps: KeyedStep[]; manifest: Manifest | null };
    /** The highest number of a user's message so far. */
    messagesTaken: number;
  } | null;
}
