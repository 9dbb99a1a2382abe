/**
 * A pool of money as a state machine. A session draws an allotment before it spends, and reports what it has spent. The
 * pool grants an allotment only if what is spent and what is held stay within the caps together.
 *
 * A session's amounts count from its start. So a request that comes twice or late does no harm, whatever was lost.
 */

import { defined } from '../contract/json.ts';
import {
  AMOUNT_KINDS,
  amountOf,
  type DrawAnswer,
  type DrawRequest,
  NO_AMOUNT,
  POOL_CAPS,
  type PoolAmount,
  type PoolAmounts,
  type PoolCap,
  type PoolClosedInput,
  type PoolLimits,
  type PoolPeriod,
  type PoolSetInput,
  type PoolView,
} from '../contract/pool.ts';
import { NANO_PER_USD } from '../contract/state.ts';
import { periodEnd, periodOf } from './period.ts';

/** Beyond what it needs, a session gets at most `1 / SHARE` of what is left: near the cap, others need some, too. */
const SHARE = 4;
/** How many sessions may hold something at a time, may wait, and are remembered although they hold nothing. */
const POOL_LIMIT = { holders: 2_000, waiting: 500, resting: 1_000 } as const;
/** Sessions that hold nothing are forgotten in batches of at least this many. */
const BATCH = 100;
/** How many holders a refusal names. */
const NAMED = 10;
const LISTED = 100;
/** The kind of amount that each cap limits. */
const KIND_OF = { usd: 'nanoUsd', tokens: 'tokens', turns: 'turns', activeMs: 'activeMs' } as const;
const NO_CAPS = { usd: null, tokens: null, turns: null, activeMs: null } as const;
const UNITS: Readonly<Record<PoolCap, string>> = {
  usd: 'US dollars',
  tokens: 'tokens',
  turns: 'turns',
  activeMs: 'ms of active time',
};

interface Holder {
  /** The number of its last request. */
  no: number;
  spent: PoolAmount;
  /** What it may spend beyond `spent`. */
  held: PoolAmount;
  /** When its last request came, in milliseconds since 1970. */
  at: number;
}

/** What one run of the pool's workflow passes to the next. */
export interface PoolData {
  schema: 1;
  poolId: string;
  limits: PoolLimits;
  period: PoolPeriod | null;
  zone: string;
  /** The period in which `spent` was spent. */
  current: string;
  spent: PoolAmount;
  total: PoolAmount;
  holders: { [sessionId: string]: Holder };
  /** `unpriced`: see {@link DrawRequest}. */
  waiting: { sessionId: string; need: PoolAmount; since: number; unpriced?: string }[];
  set: PoolView['set'];
}

/** A pool without caps, before somebody sets some. */
export function newPool(poolId: string): PoolData {
  return {
    schema: 1,
    poolId,
    limits: {},
    period: null,
    zone: 'UTC',
    current: '',
    spent: { ...NO_AMOUNT },
    total: { ...NO_AMOUNT },
    holders: {},
    waiting: [],
    set: null,
  };
}

/** Why a change of the caps is refused, or `null`. */
export function setProblem(
  { limits }: PoolData,
  input: PoolSetInput,
): { field: string; problem: string } | null {
  const next = { ...limits, ...defined(input) };
  return POOL_CAPS.some((name) => typeof next[name] === 'number')
    ? null
    : { field: 'limits', problem: `the pool needs a cap: ${POOL_CAPS.join(', ')}` };
}

/** Changes the caps and the period. What was spent in the present period stays spent. */
export function setPool(pool: PoolData, input: PoolSetInput, now: number): void {
  roll(pool, now);
  for (const name of POOL_CAPS) {
    const limit = input[name];
    if (limit === null) delete pool.limits[name];
    else if (limit !== undefined) pool.limits[name] = limit;
  }
  if (input.period !== undefined) pool.period = input.period;
  if (input.zone !== undefined) pool.zone = input.zone;
  pool.current = currentOf(pool, now);
  pool.set = { by: input.by ?? 'unnamed', at: new Date(now).toISOString() };
}

/** Takes a session's report, and grants or refuses what the session asks for. */
export function draw(pool: PoolData, request: DrawRequest, now: number): DrawAnswer {
  const { sessionId, no, need, want, caps } = request;
  roll(pool, now);
  const known = pool.holders[sessionId];
  if (known !== undefined && no < known.no) return { kind: 'stale', settled: known.spent, no: known.no };
  if (caps !== undefined) setPool(pool, { ...NO_CAPS, ...caps, by: sessionId }, now);
  const isRepeated = known?.no === no;
  const spent = charge(pool, known?.spent ?? request.settled, request.spent);
  const holder: Holder = { no, spent, held: { ...NO_AMOUNT }, at: now };
  // Each request first gives back what the session held, unless it repeats the request that got it.
  if (isRepeated && need !== undefined && isWithin(need, known.held)) holder.held = known.held;
  pool.holders[sessionId] = holder;
  pool.waiting = pool.waiting.filter((one) => one.sessionId !== sessionId);
  forget(pool);
  if (need === undefined || isHolding(holder)) return granted(holder);
  if (request.finish === true) raiseFor(pool, need);
  const refused = refusal(pool, request, need);
  if (refused !== null) {
    const { unpriced } = request;
    if (pool.waiting.length < POOL_LIMIT.waiting)
      pool.waiting.push({ sessionId, need, since: now, ...defined({ unpriced }) });
    return { kind: 'refused', settled: spent, ...refused };
  }
  const left = available(pool);
  for (const kind of AMOUNT_KINDS) {
    const more = pool.waiting.length > 0 ? 0 : Math.floor((left[kind] - need[kind]) / SHARE);
    holder.held[kind] = Math.min(Math.max(need[kind], want?.[kind] ?? 0), need[kind] + more);
  }
  return granted(holder);
}

/** Takes back what a session held that no longer runs. */
export function closed(pool: PoolData, { sessionId, no, spent }: PoolClosedInput, now: number): void {
  roll(pool, now);
  const holder = pool.holders[sessionId];
  // The session has sent another request since.
  if (holder === undefined || holder.no !== no) return;
  holder.spent = charge(pool, holder.spent, spent ?? sum(holder.spent, holder.held));
  holder.held = { ...NO_AMOUNT };
}

/**
 * Takes the sessions off the waiting list that would get what they need now. The caller must tell them.
 *
 * @param holdsBack - whether sessions stay on the list that the pool would refuse for another reason than its caps
 */
export function wake(pool: PoolData, now: number, holdsBack: () => boolean = () => true): string[] {
  roll(pool, now);
  const left = available(pool);
  const holding = holdersOf(pool).length;
  const woken = pool.waiting.filter(({ need, unpriced }) => {
    const fits = isWithin(need, left) && (obstacle(pool, holding, unpriced) === null || !holdsBack());
    if (fits) for (const kind of AMOUNT_KINDS) left[kind] -= need[kind];
    return fits;
  });
  pool.waiting = pool.waiting.filter((one) => !woken.includes(one));
  return woken.map(({ sessionId }) => sessionId);
}

/** When the present period ends, in milliseconds since 1970; `null` without one. */
export function endOf({ period, zone }: PoolData, now: number): number | null {
  return period === null ? null : periodEnd(now, period, zone);
}

/** The pool at a glance. */
export function poolView(stored: PoolData, now: number): PoolView {
  const pool = { ...stored };
  roll(pool, now);
  const holders = Object.entries(pool.holders).toSorted(([, a], [, b]) => b.at - a.at);
  const end = endOf(pool, now);
  return {
    id: pool.poolId,
    limits: pool.limits,
    period: pool.period,
    zone: pool.zone,
    ends: end === null ? null : new Date(end).toISOString(),
    spent: inUnits(pool.spent),
    total: inUnits(pool.total),
    held: inUnits(heldOf(pool)),
    sessions: holders.slice(0, LISTED).map(([sessionId, { spent, held, at }]) => ({
      sessionId,
      spent: inUnits(spent),
      held: inUnits(held),
      at: new Date(at).toISOString(),
    })),
    known: holders.length,
    waiting: pool.waiting.slice(0, LISTED).map(({ sessionId, since, need }) => ({
      sessionId,
      since: new Date(since).toISOString(),
      need: inUnits(need),
    })),
    set: pool.set,
  };
}

/** Begins the next period when its time has come. What sessions hold then counts for the new period. */
function roll(pool: PoolData, now: number): void {
  const current = currentOf(pool, now);
  if (current === pool.current) return;
  pool.current = current;
  pool.spent = { ...NO_AMOUNT };
}

function currentOf({ period, zone }: PoolData, now: number): string {
  return period === null ? '' : periodOf(now, period, zone);
}

/**
 * Charges what a session has spent since its last report. A provider that ignores `max_tokens` can make it exceed
 * `held`.
 */
function charge(pool: PoolData, before: PoolAmount, spent: PoolAmount): PoolAmount {
  const after = { ...before };
  for (const kind of AMOUNT_KINDS) {
    const more = Math.max(0, spent[kind] - before[kind]);
    after[kind] += more;
    pool.spent = { ...pool.spent, [kind]: pool.spent[kind] + more };
    pool.total = { ...pool.total, [kind]: pool.total[kind] + more };
  }
  return after;
}

function granted({ spent, held }: Holder): DrawAnswer {
  return { kind: 'granted', settled: spent, ceiling: sum(spent, held) };
}

/** Why a session gets nothing now, or `null`. */
function refusal(
  pool: PoolData,
  { unpriced }: DrawRequest,
  need: PoolAmount,
): Pick<Extract<DrawAnswer, { kind: 'refused' }>, 'cap' | 'atLeast' | 'message' | 'holders'> | null {
  const { poolId, limits, spent } = pool;
  const holding = holdersOf(pool);
  const holders = holding
    .toSorted(([, a], [, b]) => a.at - b.at)
    .slice(0, NAMED)
    .map(([sessionId, { no }]) => ({ sessionId, no }));
  const message = obstacle(pool, holding.length, unpriced);
  if (message !== null) return { message, holders: isUnpriced(pool, unpriced) ? [] : holders };
  const left = available(pool);
  const cap = POOL_CAPS.find((name) => need[KIND_OF[name]] > left[KIND_OF[name]]);
  if (cap === undefined) return null;
  const kind = KIND_OF[cap];
  const held = heldOf(pool)[kind];
  const per = pool.period === null ? '' : ` a ${pool.period}`;
  const parts = [
    `${inUnit(cap, spent[kind])} spent`,
    ...(held === 0 ? [] : [`${inUnit(cap, held)} held by ${holding.length} sessions`]),
    `${inUnit(cap, need[kind])} needed`,
  ];
  return {
    cap,
    atLeast: inUnit(cap, spent[kind] + held + need[kind]),
    message: `${cap}: pool ${poolId} has ${limits[cap]} ${UNITS[cap]}${per}: ${parts.join(', ')}`,
    holders,
  };
}

/** Why the pool grants nothing to a session now, whatever is left. `null`: only the caps count. */
function obstacle(pool: PoolData, holding: number, unpriced: string | undefined): string | null {
  const { poolId } = pool;
  if (isUnpriced(pool, unpriced))
    return `usd: model ${unpriced} has no price, so pool ${poolId} cannot keep its cap on dollars. Set its price in the definition of the agent`;
  return holding < POOL_LIMIT.holders
    ? null
    : `pool ${poolId} serves ${POOL_LIMIT.holders} sessions at a time, and no more until one rests`;
}

function isUnpriced({ limits }: PoolData, unpriced: string | undefined): boolean {
  return limits.usd !== undefined && unpriced !== undefined;
}

/** Raises the caps by what is missing. */
function raiseFor(pool: PoolData, need: PoolAmount): void {
  const left = available(pool);
  for (const cap of POOL_CAPS) {
    const missing = need[KIND_OF[cap]] - left[KIND_OF[cap]];
    if (missing > 0) pool.limits[cap] = (pool.limits[cap] ?? 0) + inUnit(cap, missing);
  }
}

/** What is neither spent nor held. */
function available(pool: PoolData): PoolAmount {
  const held = heldOf(pool);
  const left = { ...NO_AMOUNT };
  for (const cap of POOL_CAPS) {
    const kind = KIND_OF[cap];
    const limit = pool.limits[cap];
    const most = limit === undefined ? Number.MAX_SAFE_INTEGER : toAmount(cap, limit);
    left[kind] = Math.max(0, most - pool.spent[kind] - held[kind]);
  }
  return left;
}

function heldOf({ holders }: PoolData): PoolAmount {
  return Object.values(holders).reduce((all, { held }) => sum(all, held), NO_AMOUNT);
}

/** The sessions that hold something. */
function holdersOf({ holders }: PoolData): [sessionId: string, Holder][] {
  return Object.entries(holders).filter(([, holder]) => isHolding(holder));
}

function isHolding({ held }: Holder): boolean {
  return AMOUNT_KINDS.some((kind) => held[kind] > 0);
}

/**
 * Forgets the sessions that have been silent for longest. Each reports what the pool confirmed, so nothing counts
 * twice.
 */
function forget(pool: PoolData): void {
  const all = Object.entries(pool.holders);
  if (all.length <= POOL_LIMIT.resting + BATCH) return;
  const resting = all.filter(([, holder]) => !isHolding(holder));
  if (resting.length <= POOL_LIMIT.resting + BATCH) return;
  const old = resting.toSorted(([, a], [, b]) => a.at - b.at).slice(0, -POOL_LIMIT.resting);
  for (const [sessionId] of old) delete pool.holders[sessionId];
}

function isWithin(need: PoolAmount, left: PoolAmount): boolean {
  return AMOUNT_KINDS.every((kind) => need[kind] <= left[kind]);
}

function sum(a: PoolAmount, b: PoolAmount): PoolAmount {
  return amountOf((kind) => a[kind] + b[kind]);
}

function toAmount(cap: PoolCap, value: number): number {
  return cap === 'usd' ? Math.round(value * NANO_PER_USD) : value;
}

function inUnit(cap: PoolCap, amount: number): number {
  return cap === 'usd' ? amount / NANO_PER_USD : amount;
}

function inUnits({ nanoUsd, ...amount }: PoolAmount): PoolAmounts {
  return { usd: inUnit('usd', nanoUsd), ...amount };
}
