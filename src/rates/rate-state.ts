/** What the limiter of one key holds. */
import type { RateDemand, WindowLimit } from '../contract/rates.ts';
import type { Learned } from './learned.ts';

/** A session that waits, or was called. */
export interface Waiting extends Omit<RateDemand, 'id'> {
  /** When a call ends that the session does not answer. */
  until?: number;
}

/** A request that was granted and is not settled. */
interface Open extends Omit<RateDemand, 'sessionId'> {
  at: number;
  /** The provider has begun to answer it. */
  answered?: true;
}

/** Plain JSON, for a new run of the workflow. */
export interface RateState {
  /** The limit that counts. */
  limit: WindowLimit;
  /** The limit as workers tell it, when the provider says more. */
  told?: WindowLimit;
  /** What the provider has said. */
  learned?: Learned;
  /** Settled requests, in order: from when on they count, and what they count. */
  counted: { at: number; requests: number; tokens: number }[];
  open: Open[];
  /** Sessions whose turn it is, until they ask again. */
  called: Waiting[];
  /** In the order of their arrival. */
  waiting: Waiting[];
  /** The virtual time up to which each tenant was served, in shares of the limit. */
  served: { tenant: string; upTo: number }[];
  /** The virtual time of the last turn. */
  clock: number;
  backOffUntil: number;
  /** While sessions wait for a limit that was full: the share that may be given out, and as of when. */
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
