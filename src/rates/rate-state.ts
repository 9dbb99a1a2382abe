/** The state of the limiter of one key. */
import type { RateDemand, WindowLimit } from '../contract/rates.ts';
import type { Learned } from './learned.ts';

/** A session that waits, or was called. */
export interface Waiting extends Omit<RateDemand, 'id'> {
  /** Only for a called session: until when it may answer the call. */
  until?: number;
}

/** A request that was granted and is not settled yet. */
interface Open extends Omit<RateDemand, 'sessionId'> {
  at: number;
  /** The provider has begun to answer it. */
  answered?: true;
}

/** The state as plain JSON: the workflow passes it to its next run. */
export interface RateState {
  /** Absent: 1, the only one so far. */
  schema?: 1;
  /** The limit that counts. */
  limit: WindowLimit;
  /** The limit as workers tell it. Only if the limiter also learns from the provider. */
  told?: WindowLimit;
  /** What the provider has said. */
  learned?: Learned;
  /** Settled requests in the order of time: from when on they count, and how much. */
  counted: { at: number; requests: number; tokens: number }[];
  open: Open[];
  /** Sessions that were told that it is their turn, until they ask again. */
  called: Waiting[];
  /** Sessions that wait, in the order of their arrival. */
  waiting: Waiting[];
  /** The virtual time up to which each tenant was served, in shares of the limit. */
  served: { tenant: string; upTo: number }[];
  /** The virtual time at which the last turn began. */
  clock: number;
  backOffUntil: number;
  /** Set while sessions wait for a limit that was full: which share may be given out, and as of when. */
  paced?: { share: number; at: number };
}

/** A limiter that has counted nothing. */
export function newRates(): RateState {
  return {
    limit: { windowMs: 60_000 },
    counted: [],
    open: [],
    called: [],
    waiting: [],
    served: [],
    clock: 0,
    backOffUntil: 0,
  };
}
