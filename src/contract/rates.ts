/** Limits of a provider's key: what workers tell the workflow that keeps one, and what it answers. */

/** What a provider allows within its window, for all sessions together. */
export interface WindowLimit {
  windowMs: number;
  requests?: number;
  tokens?: number;
  /** The provider's answers say what else it allows. */
  fromHeaders?: true;
}

/** What an answer says of a limit. The amounts are those of a window. */
export interface SaidAmount {
  limit?: number;
  remaining?: number;
  /** When all of it is free again. */
  resetMs?: number;
}

/** What an answer of a provider says of its limits. */
export interface RateSaid {
  agoMs: number;
  /** The requests that were answered since the worker told the last one: the provider counts them. */
  answered: string[];
  requests?: SaidAmount;
  tokens?: SaidAmount;
}

/** A model request that a session wants to send. */
export interface RateDemand {
  /** Differs for each request. */
  id: string;
  sessionId: string;
  /** Tenants share a limit equally. Sessions without one share the tenant `''`. */
  tenant: string;
  /** An estimate of what it will use. */
  tokens: number;
}

/** What became of a granted request. */
export interface RateSettlement {
  id: string;
  /** How long ago the provider answered: it counts the request from an earlier moment. */
  agoMs: number;
  /** What it used. Absent: nobody knows, and the estimate counts. */
  tokens?: number;
  /** It was not sent. */
  unsent?: true;
  /** The provider refused it for its limit: nobody asks it for this long. */
  backOffMs?: number;
}

/** What a worker tells a limiter. Nothing in it takes effect twice. */
export interface RateExchange {
  /** Absent: as before. */
  limit?: WindowLimit;
  /** What the provider has said last. */
  said?: RateSaid;
  demands: RateDemand[];
  settled: RateSettlement[];
  /** Sessions that do not wait any more. */
  left: string[];
}

export interface RateAnswer {
  /** The demands that may be sent, after so many milliseconds. */
  granted: { id: string; afterMs: number }[];
  /** The other demands: the limiter signals their sessions when it is their turn. */
  queued: { id: string; ahead: number }[];
  /** The limit with what the provider has said. */
  limit?: WindowLimit;
  /** The limiter does not know yet what the provider says. */
  unlearned?: true;
}

/** A session that waits for the limit of a key. */
export interface Limited {
  key: string;
  message: string;
  /** ISO 8601. */
  since: string;
}

/** How a limiter stands. */
export interface RateView {
  key: string;
  limit: WindowLimit;
  /** What counts against the limit now, with requests that were granted and have no answer yet, and what others use. */
  used: { requests: number; tokens: number };
  /** Sessions that wait, by tenant. */
  waiting: { tenant: string; sessions: number }[];
  /** ISO 8601, while the provider has asked for a pause. */
  backOffUntil: string | null;
}

/** Names of the limiter's update and query. */
export const RATES = { exchange: 'exchange', view: 'rates' } as const;

/** Input of the workflow that keeps the limit of a key. */
export interface RateLimiterInput {
  key: string;
  /** Events after which it goes on in a new run. */
  runEvents?: number;
  /** Of the run before. */
  state?: unknown;
}
