/** A pool of money: caps that many sessions share. It is a workflow of its own, to which sessions send updates. */
import * as z from 'zod/mini';
import { type LazySchema, lazySchema } from './lazy-schema.ts';

/** What sessions spend of a pool, in whole numbers: billionths of a US dollar, tokens, model calls, milliseconds. */
export interface PoolAmount {
  nanoUsd: number;
  tokens: number;
  turns: number;
  activeMs: number;
}

/** Zero of each kind. */
export const NO_AMOUNT: Readonly<PoolAmount> = { nanoUsd: 0, tokens: 0, turns: 0, activeMs: 0 };

/** The kinds of an amount. */
export const AMOUNT_KINDS = ['nanoUsd', 'tokens', 'turns', 'activeMs'] as const;

/** Makes an amount from the number of each kind. */
export function amountOf(part: (kind: keyof PoolAmount) => number): PoolAmount {
  return {
    nanoUsd: part('nanoUsd'),
    tokens: part('tokens'),
    turns: part('turns'),
    activeMs: part('activeMs'),
  };
}

export type PoolCap = 'usd' | 'tokens' | 'turns' | 'activeMs';
/** The caps in the order in which they are checked. */
export const POOL_CAPS: readonly PoolCap[] = ['usd', 'tokens', 'turns', 'activeMs'];

/** Caps of a pool. Absent means no cap. */
export interface PoolLimits {
  /** US dollars. */
  usd?: number;
  /** Input plus output tokens. */
  tokens?: number;
  /** Model calls. */
  turns?: number;
  /** Milliseconds in which a model or tool call was in flight. */
  activeMs?: number;
}

export type PoolPeriod = 'day' | 'month';

/** A pool's id. */
export const poolIdSchema: LazySchema<string> = lazySchema(() =>
  z
    .string()
    .check(
      z.regex(
        /^[^\s"'\\]{1,200}$/,
        'expected an id of 1 to 200 characters, without blanks, quotes and backslashes',
      ),
    ),
);

/** Settings of a pool. What is left out stays as it is; `null` removes a cap. */
export interface PoolSetInput {
  usd?: number | null | undefined;
  tokens?: number | null | undefined;
  turns?: number | null | undefined;
  activeMs?: number | null | undefined;
  /** The caps hold for each day or month of `zone`. `null`: for all time, as in a new pool. */
  period?: PoolPeriod | null | undefined;
  /** An IANA time zone, such as `Europe/Berlin`. A new pool has UTC. */
  zone?: string | undefined;
  by?: string | undefined;
}

const WRITE = 'write a number above 0, or null for no cap';
const WRITE_WHOLE = 'write a whole number above 0, or null for no cap';
const count = z.optional(z.nullable(z.int(WRITE_WHOLE).check(z.positive(WRITE_WHOLE))));

/** The input of {@link POOL_UPDATE.set}. */
export const poolSetSchema: LazySchema<PoolSetInput> = lazySchema(() =>
  z.object({
    // A billionth of a dollar is the smallest amount that is counted.
    usd: z.optional(
      z.nullable(z.number(WRITE).check(z.gte(1e-9, WRITE), z.lte(1e6, 'the maximum is a million'))),
    ),
    tokens: count,
    turns: count,
    activeMs: count,
    period: z.optional(z.nullable(z.enum(['day', 'month'], 'expected day, month or null'))),
    zone: z.optional(z.string().check(z.refine(isZone, 'expected a time zone such as Europe/Berlin'))),
    by: z.optional(z.string().check(z.maxLength(200))),
  }),
);

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone }).format(0);
    return true;
  } catch {
    return false;
  }
}

const amountSchema = lazySchema<PoolAmount>(() => {
  const whole = z.int().check(z.nonnegative());
  return z.object({ nanoUsd: whole, tokens: whole, turns: whole, activeMs: whole });
});

/**
 * A session's request to its pool: the session reports what it has spent and, with `need`, asks for an allotment. All
 * amounts count from the session's start, so a repeated or lost request does no harm.
 */
export interface DrawRequest {
  sessionId: string;
  /** The number of the session's request. A request older than the last one changes nothing. */
  no: number;
  /** `settled`: what the pool has confirmed as spent. `spent`: what is spent by now. */
  settled: PoolAmount;
  spent: PoolAmount;
  /**
   * What the next model call can cost at most, and how much the session would like. Absent: it gives back everything.
   */
  need?: PoolAmount | undefined;
  want?: PoolAmount | undefined;
  /** A model of the session that has no price: the pool cannot keep a cap on dollars. */
  unpriced?: string | undefined;
  /** Only from the session whose caps the pool has: its caps, because they have changed. */
  caps?: PoolLimits | undefined;
  /** A person lets the session finish: the pool raises its caps by what the session needs. */
  finish?: true | undefined;
}
const limit = z.optional(z.number().check(z.nonnegative()));
export const drawRequestSchema: LazySchema<DrawRequest> = lazySchema(() =>
  z.object({
    sessionId: z.string().check(z.minLength(1), z.maxLength(400)),
    no: z.int().check(z.positive()),
    settled: amountSchema(),
    spent: amountSchema(),
    need: z.optional(amountSchema()),
    want: z.optional(amountSchema()),
    unpriced: z.optional(z.string()),
    caps: z.optional(z.object({ usd: limit, tokens: limit, turns: limit, activeMs: limit })) as z.ZodMiniType<
      PoolLimits | undefined
    >,
    finish: z.optional(z.literal(true)),
  }),
);

/** A session that holds an allotment which it has not spent, and the number of its last request. */
export interface HeldBy {
  sessionId: string;
  no: number;
}

/** The pool's answer. `settled`: what the pool has on record as spent by the session. */
export type DrawAnswer =
  /** `ceiling`: how much the session may have spent in all before it must ask again. */
  | { kind: 'granted'; settled: PoolAmount; ceiling: PoolAmount }
  | {
      kind: 'refused';
      settled: PoolAmount;
      cap?: PoolCap;
      /** The lowest cap with which the pool would grant the request, in the cap's unit. */
      atLeast?: number;
      message: string;
      /** Sessions that hold unspent amounts, first those that have been silent for longest. */
      holders: HeldBy[];
    }
  /** The pool has already answered a later request of the session. `no`: the number of that request. */
  | { kind: 'stale'; settled: PoolAmount; no: number };

/** Reports that a session which held an allotment no longer runs. */
export interface PoolClosedInput extends HeldBy {
  /** What the session has spent according to its history. Absent: the history is gone, so all that it held is spent. */
  spent?: PoolAmount | undefined;
}
export const poolClosedSchema: LazySchema<PoolClosedInput> = lazySchema(() =>
  z.object({
    sessionId: z.string().check(z.minLength(1), z.maxLength(400)),
    no: z.int().check(z.positive()),
    spent: z.optional(amountSchema()),
  }),
);

/** The argument of the pool's workflow. */
export interface PoolInput {
  poolId: string;
  /** Updates after which the pool continues in a new run. */
  runUpdates?: number;
  /** What one run passes to the next. */
  carried?: unknown;
}

/** Updates of a pool. */
export const POOL_UPDATE = { draw: 'draw', closed: 'closed', set: 'set' } as const;
export const POOL_QUERY = { state: 'state' } as const;

/** A session's share of a pool. */
export interface PoolShare {
  id: string;
  /** Number of its last request. */
  no: number;
  /** See {@link DrawRequest}. */
  settled: PoolAmount;
  /** The most that it may have spent before it must ask again. */
  ceiling: PoolAmount;
  /**
   * Spent under its id before its own count began: a reset in Temporal takes the session back, but not its spending.
   */
  before?: PoolAmount;
  /** The session must ask the pool again now. */
  due?: true;
  /** How often it has asked in vain. */
  checks?: number;
  /** Set if the session made the pool from its own caps, for its sub-agents: the caps that it last told the pool. */
  caps?: PoolLimits;
  /** The pool refused a model without a price: the session looks for a newer definition before it asks again. */
  look?: true;
  /** The pool did not confirm what the session gave back. The session's next request reports it again. */
  unsettled?: true;
}

/** Amounts in the units of the caps. */
export type PoolAmounts = Required<PoolLimits>;

/** A pool at a glance. */
export interface PoolView {
  id: string;
  limits: PoolLimits;
  period: PoolPeriod | null;
  zone: string;
  /** ISO 8601: when the present period ends. */
  ends: string | null;
  /** Spent in the present period, and since the pool exists. */
  spent: PoolAmounts;
  total: PoolAmounts;
  /** What sessions hold and have not spent. */
  held: PoolAmounts;
  /** The sessions that were heard of last, at most 100. What each has spent counts from the session's start. */
  sessions: { sessionId: string; spent: PoolAmounts; held: PoolAmounts; at: string }[];
  /** How many sessions the pool knows: those that hold something, and about a thousand of the others. */
  known: number;
  /** Sessions that wait for the pool, at most 100, longest first. */
  waiting: { sessionId: string; since: string; need: PoolAmounts }[];
  /** Who set it last, and when. */
  set: { by: string; at: string } | null;
}
