/** Rate limits of a provider's key: what workers tell the limiter's workflow, and what it answers. */
import * as z from 'zod/mini';
import { type LazySchema, lazySchema } from './lazy-schema.ts';

/** What a provider allows within its window, for all sessions together. */
export interface WindowLimit {
  windowMs: number;
  requests?: number;
  tokens?: number;
  /** The limiter also learns limits from the headers of the provider's answers. */
  fromHeaders?: true;
}

/** What an answer of a provider says about one limit, in amounts per window. */
export interface SaidAmount {
  limit?: number;
  remaining?: number;
  /** In how many milliseconds the whole limit is free again. */
  resetMs?: number;
}

/** What an answer of a provider says about its limits, and how many milliseconds ago. */
export interface RateSaid {
  agoMs: number;
  /** The requests that were answered since the worker's last report: the provider's amounts include them. */
  answered: string[];
  requests?: SaidAmount;
  tokens?: SaidAmount;
}

/** A model request that a session wants to send. */
export interface RateDemand {
  /** Identifies the request. */
  id: string;
  sessionId: string;
  /** Tenants share a limit equally. Sessions without one share the tenant `''`. */
  tenant: string;
  /** An estimate of the tokens that it will use. */
  tokens: number;
}

/** What became of a granted request. */
export interface RateSettlement {
  id: string;
  /** How many milliseconds ago the provider answered: it has counted the request since before then. */
  agoMs: number;
  /** The tokens that it used. Absent: nobody knows, so the estimate counts. */
  tokens?: number;
  /** The request was not sent. */
  unsent?: true;
  /** The provider refused the request because of its limit: no request is granted for this long. */
  backOffMs?: number;
}

/** What a worker tells a limiter. A repeated exchange takes effect once. */
export interface RateExchange {
  /** Absent: the limit stays as it is. */
  limit?: WindowLimit;
  /** What the provider's last answer said. */
  said?: RateSaid;
  demands: RateDemand[];
  settled: RateSettlement[];
  /** Sessions that do not wait any more. */
  left: string[];
}

/** The input of {@link RATES.exchange}. */
export const rateExchangeSchema: LazySchema<RateExchange> = lazySchema(() => {
  const id = z.string().check(z.minLength(1));
  const amount = z.number().check(z.nonnegative());
  const limit = z.exactOptional(z.number().check(z.positive()));
  const said = z.exactOptional(
    z.object({
      limit: z.exactOptional(amount),
      remaining: z.exactOptional(amount),
      resetMs: z.exactOptional(amount),
    }),
  );
  return z.object({
    limit: z.exactOptional(
      z.object({
        windowMs: z.number().check(z.positive()),
        requests: limit,
        tokens: limit,
        fromHeaders: z.exactOptional(z.literal(true)),
      }),
    ),
    said: z.exactOptional(z.object({ agoMs: amount, answered: z.array(id), requests: said, tokens: said })),
    demands: z.array(z.object({ id, sessionId: id, tenant: z.string(), tokens: amount })),
    settled: z.array(
      z.object({
        id,
        agoMs: amount,
        tokens: z.exactOptional(amount),
        unsent: z.exactOptional(z.literal(true)),
        backOffMs: z.exactOptional(amount),
      }),
    ),
    left: z.array(id),
  });
});

export interface RateAnswer {
  /** The demands that may be sent, each after `afterMs`. */
  granted: { id: string; afterMs: number }[];
  /** The other demands, and how many wait ahead: the limiter signals their sessions when it is their turn. */
  queued: { id: string; ahead: number }[];
  /** The limit, including what the limiter learned from the provider's answers. */
  limit?: WindowLimit;
  /** The limiter has not learned the provider's limit yet. */
  unlearned?: true;
}

/** A session that waits for the limit of a key. */
export interface Limited {
  key: string;
  message: string;
  /** ISO 8601. */
  since: string;
}

/** The status of a limiter. */
export interface RateView {
  key: string;
  limit: WindowLimit;
  /** What counts against the limit now, including granted requests without an answer, and other users of the key. */
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
  /** Events after which it continues in a new run. */
  runEvents?: number;
  /** The state of the previous run. */
  state?: unknown;
}
