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

/** Nothing of all. */
export const NO_AMOUNT: Readonly<PoolAmount> = { nanoUsd: 0, tokens: 0, turns: 0, activeMs: 0 };

/** What an amount counts. */
export const AMOUNT_KINDS = ['nanoUsd', 'tokens', 'turns', 'activeMs'] as const;

/** An amount, each part by its name. */
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

/** What sets a pool: caps that are left out stay, and `null` takes one away. */
export interface PoolSetInput {
  usd?: number | null | undefined;
  tokens?: number | null | undefined;
  turns?: number | null | undefined;
  activeMs?: number | null | undefined;
  /** The caps hold for each day or month of `zone`. `null`: for all time, as at first. */
  period?: PoolPeriod | null | undefined;
  /** An IANA time zone, such as `Europe/Berlin`. Default: UTC. */
  zone?: string | undefined;
  by?: string | undefined;
}

const WRITE = 'write a number above 0, or null for no cap';
const WRITE_WHOLE = 'write a whole number above 0, or null for no cap';
const count = z.optional(z.nullable(z.int(WRITE_WHOLE).check(z.positive(WRITE_WHOLE))));

/** The input of {@link POOL_UPDATE.set}. */
export const poolSetSchema: LazySchema<PoolSetInput> = lazySchema(() =>
  z.object({
    // A billionth of a dollar is the least that is counted.
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
 * From a session: what it has spent, and with `need`, that it asks for an allotment. All amounts of a session count from its
 * start, so that a request that is repeated or lost changes nothing.
 */
export interface DrawRequest {
  sessionId: string;
  /** The number of the session's request. An older one than the last changes nothing. */
  no: number;
  /** What the pool has confirmed as spent, and what is spent by now. */
  settled: PoolAmount;
  spent: PoolAmount;
  /** What the next model call can cost at most, and how much the session would like. Absent: it gives back all. */
  need?: PoolAmount | undefined;
  want?: PoolAmount | undefined;
  /** A model of the session that has no price: no cap on dollars can hold. */
  unpriced?: string | undefined;
  /** The caps of the session are those of the pool, and have changed. */
  caps?: PoolLimits | undefined;
  /** A person lets the session finish: the caps are raised by what it needs. */
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

/** What a session holds of a pool and has not spent. */
export interface HeldBy {
  sessionId: string;
  no: number;
}

/** The pool's answer. `settled`: what it has on record as spent by the session. */
export type DrawAnswer =
  /** The session may have spent so much in all, before it asks again. */
  | { kind: 'granted'; settled: PoolAmount; ceiling: PoolAmount }
  | {
      kind: 'refused';
      settled: PoolAmount;
      cap?: PoolCap;
      /** The least that the cap would have to be, in its unit. */
      atLeast?: number;
      message: string;
      /** Sessions that hold what they have not spent: those that have not been heard of for longest. */
      holders: HeldBy[];
    }
  /** A later request of the session was answered before. `no`: its number. */
  | { kind: 'stale'; settled: PoolAmount; no: number };

/** Reports that a session which held something does not run any more. */
export interface PoolClosedInput extends HeldBy {
  /** What its history says it has spent. Absent: the history is gone, and all that it held counts as spent. */
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
  /** Updates after which the pool goes on in a new run. */
  runUpdates?: number;
  /** What one run passes to the next. */
  carried?: unknown;
}

/** Updates of a pool. */
export const POOL_UPDATE = { draw: 'draw', closed: 'closed', set: 'set' } as const;
export const POOL_QUERY = { state: 'state' } as const;

/** What a session has of a pool. */
export interface PoolShare {
  id: string;
  /** Number of its last request. */
  no: number;
  /** See {@link DrawRequest}. */
  settled: PoolAmount;
  /** The most that it may have spent before it asks again. */
  ceiling: PoolAmount;
  /** Spent under its id before its own count began: Temporal's reset takes a session back, but not its money. */
  before?: PoolAmount;
  /** It waits for the pool, and is to ask again now. */
  due?: true;
  /** How often it has asked in vain. */
  checks?: number;
  /** Of a pool that the session has made of its own caps, for its sub-agents: the caps as it has told them. */
  caps?: PoolLimits;
  /** The pool did not answer what it gave back. It says so with its next request. */
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
  /** How many sessions there are: those that hold something, and the last thousand of the others. */
  known: number;
  /** Sessions that wait for the pool, at most 100, longest first. */
  waiting: { sessionId: string; since: string; need: PoolAmounts }[];
  /** Who set it last, and when. */
  set: { by: string; at: string } | null;
}
