/**
 * The pool of money that a session shares with others. Before a model call that its allotment does not cover, the
 * session draws a new allotment, enough for some calls. When it comes to rest, it gives back what it holds, except
 * while it waits for a rate limit.
 */
import type { DescribeResult, DrawResult } from '../contract/activities.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import { defined } from '../contract/json.ts';
import {
  AMOUNT_KINDS,
  amountOf,
  NO_AMOUNT,
  POOL_CAPS,
  type PoolAmount,
  type PoolAmounts,
  type PoolLimits,
  type PoolShare,
} from '../contract/pool.ts';
import type { InFlight, SessionState, Spent } from '../contract/state.ts';
import { usd, worstCase } from './budget.ts';
import { addedBytes, compaction } from './compaction.ts';
import { decides } from './edition.ts';
import type { Command, Moment, Step } from './events.ts';
import { setManifest } from './manifest.ts';
import { describeCommand } from './model-command.ts';
import { hasActivity, heartbeatMs } from './state.ts';
import { stop } from './wait.ts';

/** For how many model calls a session draws at once. A pool that has little left gives less. */
const CALLS = 16;
/** Active time in milliseconds: what a session draws at once, and what it needs to begin a model call. */
const ACTIVE_MS = { want: 600_000, need: 1 };
/** A waiting session asks again after pauses that double, because a signal of the pool may be lost. */
const RECHECK = { firstMs: 60_000, maxMs: 3_600_000 };

/** The share of a session that has drawn nothing from its pool yet. */
export function newShare(id: string): PoolShare {
  return { id, no: 0, settled: { ...NO_AMOUNT }, ceiling: { ...NO_AMOUNT } };
}

/** Draws what a model call needs; `null` if the allotment covers it, or the session has no pool. */
export function drawStep(state: SessionState, reserve: { nanoUsd: number; tokens: number }): Step | null {
  const { pool } = state;
  if (pool === undefined || (isCovered(state, reserve) && hasTold(state, pool))) return null;
  return lookForPrice(state) ?? drawWith(state, pool, reserve);
}

/** Whether the allotment covers a model call. */
export function isCovered(state: SessionState, reserve: { nanoUsd: number; tokens: number }): boolean {
  const { pool } = state;
  if (pool === undefined) return true;
  const spent = spentOf(state, pool);
  const need = needOf(state, reserve);
  return AMOUNT_KINDS.every((kind) => spent[kind] + need[kind] <= pool.ceiling[kind]);
}

/** The step of a session that waits for its pool: it asks when the pool signals, and now and then by itself. */
export function lookAtPool(state: SessionState): Step | null {
  const { pool, inFlight } = state;
  if (pool === undefined || !waitsForPool(state)) return null;
  if (inFlight.some(({ kind }) => kind === 'draw' || kind === 'describe')) return null;
  if (pool.due === true) {
    const compact = compaction(state);
    return lookForPrice(state) ?? drawWith(state, pool, worstCase(state, addedBytes(defined({ compact }))));
  }
  return askLater(state, pool);
}

function lookForPrice(state: SessionState): Step | null {
  return state.pool?.look === true ? { type: 'issue', command: describeCommand(state) } : null;
}

/** Applies the result of a look for a newer definition. The session then asks its pool. */
export function lookedForPrice(
  state: SessionState,
  outcome: ActivityOutcome<DescribeResult>,
  moment: Moment,
): void {
  delete state.pool?.look;
  const manifest = outcome.ok && outcome.value.kind === 'manifest' ? outcome.value.manifest : null;
  if (manifest !== null && manifest.digest !== state.manifest?.digest) setManifest(state, manifest, moment);
}

function askLater({ inFlight, seq }: SessionState, { id, checks = 1 }: PoolShare): Step | null {
  if (inFlight.some(({ kind }) => kind === 'pool_recheck')) return null;
  const ms = Math.min(RECHECK.maxMs, RECHECK.firstMs * 2 ** (checks - 1));
  const command = { kind: 'timer', seq: seq + 1, ms, summary: `ask pool ${id} again` } as const;
  return { type: 'issue', command, timer: 'pool_recheck' };
}

/** Whether the session needs a timer after which it asks its pool again. */
export function asksAgain(state: SessionState): boolean {
  const { pool, cancelling } = state;
  if (pool === undefined || pool.due === true || cancelling !== null) return false;
  return waitsForPool(state) || pool.unsettled === true;
}

/** Gives back what the session holds and reports what it has spent; `null` when the pool knows both. */
export function giveBack(state: SessionState): Step | null {
  const { pool, limited } = state;
  // A rate limit soon lets the session go on.
  if (limited !== undefined) return null;
  if (pool?.unsettled !== true || pool.due === true) return settleEnd(state);
  return asksAgain(state) && !hasActivity(state) ? askLater(state, pool) : null;
}

/** Like {@link giveBack}, before the session ends, and without a timer: its history also shows what it has spent. */
export function settleEnd(state: SessionState): Step | null {
  const { pool } = state;
  if (pool === undefined || hasActivity(state) || (pool.unsettled === true && pool.due !== true)) return null;
  const spent = spentOf(state, pool);
  const isSettled = AMOUNT_KINDS.every(
    (kind) => spent[kind] === pool.settled[kind] && spent[kind] >= pool.ceiling[kind],
  );
  return isSettled && hasTold(state, pool) ? null : drawWith(state, pool, null);
}

/** The session's pool, and what the session holds of it. */
export function poolHeld(state: SessionState): { id: string; held: PoolAmounts } | undefined {
  const { pool } = state;
  if (pool === undefined) return undefined;
  const spent = spentOf(state, pool);
  const { nanoUsd, ...held } = amountOf((kind) => Math.max(0, pool.ceiling[kind] - spent[kind]));
  return { id: pool.id, held: { usd: usd(nanoUsd), ...held } };
}

/** Whether the session waits for its pool. */
export function waitsForPool({ wait }: SessionState): boolean {
  return wait?.next.action === 'pool';
}

/**
 * Makes a pool from a session's own caps before it starts a sub-agent, so that the caps hold for both. `null`: the
 * session has a pool, or no caps.
 */
export function poolOfTree(state: SessionState): Step | null {
  const { pool, parent, sessionId, namespace } = state;
  if (pool !== undefined || Object.keys(capsOf(state)).length === 0) return null;
  if (parent !== undefined && !decides(state, 'capsBelow')) return null;
  // A session's id may have characters that a pool's id must not have.
  const id = `tree/${/^[^\s"'\\]{1,190}$/.test(sessionId) ? sessionId : namespace}`;
  return drawWith(state, { ...newShare(id), caps: {} }, null);
}

/** The caps that a pool can have. */
function capsOf({ budget: { limits } }: SessionState): PoolLimits {
  const { usd: dollars, tokens, turns, activeMs } = limits;
  return defined({ usd: dollars, tokens, turns, activeMs });
}

/** Whether a pool made from the session's own caps knows the present caps. */
function hasTold(state: SessionState, { caps: told }: PoolShare): boolean {
  if (told === undefined) return true;
  const caps: PoolLimits = capsOf(state);
  return POOL_CAPS.every((cap) => caps[cap] === told[cap]);
}

/** Records that a request to the pool is in flight. */
export function drawing(state: SessionState, { input }: Extract<Command, { kind: 'draw' }>): void {
  state.pool ??= newShare(input.pool);
  const { pool } = state;
  pool.no = input.no;
  delete pool.due;
  if (input.caps !== undefined) pool.caps = input.caps;
}

/** Applies the pool's answer. */
export function applyDraw(
  state: SessionState,
  flight: InFlight,
  outcome: ActivityOutcome<DrawResult>,
  moment: Moment,
): void {
  const { pool } = state;
  if (pool === undefined) return;
  const gives = flight.gives === true;
  if (!outcome.ok) {
    // The pool may not have got the caps.
    if (pool.caps !== undefined) pool.caps = {};
    if (outcome.failure.kind === 'cancelled') return;
    // The next request reports it. If the session has ended, its history shows what it has spent.
    if (gives) {
      pool.unsettled = true;
      pool.checks = (pool.checks ?? 0) + 1;
    } else waitForPool(state, moment, `pool ${pool.id} did not answer: ${outcome.failure.message}`);
    return;
  }
  const answer = outcome.value;
  if (answer.kind === 'unset') {
    pool.unsettled = true;
    if (!gives) waitForPool(state, moment, answer.message);
    return;
  }
  if (answer.kind === 'stale') {
    // A reset in Temporal took the session back. What it spent before stays spent.
    const own = spentOf(state, { ...pool, before: NO_AMOUNT });
    pool.no = answer.no;
    pool.before = amountOf((kind) => Math.max(0, answer.settled[kind] - own[kind]));
    pool.settled = answer.settled;
    pool.ceiling = answer.settled;
    if (waitsForPool(state)) pool.due = true;
    return;
  }
  pool.settled = answer.settled;
  pool.ceiling = answer.kind === 'granted' ? answer.ceiling : answer.settled;
  delete pool.unsettled;
  if (gives) return;
  if (answer.kind === 'refused') {
    const { message, cap, atLeast, holders } = answer;
    // Only a model without a price is refused without a cap and without others.
    if (cap === undefined && holders.length === 0 && decides(state, 'looksForPrice')) pool.look = true;
    // A sub-agent ends at its own caps. While another session holds something, it may yet get what it needs.
    if (state.parent !== undefined && pool.caps !== undefined && holders.length === 0)
      stop(state, moment, 'budget', message);
    else waitForPool(state, moment, message, defined({ cap, atLeast }));
    return;
  }
  delete pool.due;
  delete pool.checks;
  if (waitsForPool(state)) state.wait = null;
}

function waitForPool(
  state: SessionState,
  moment: Moment,
  message: string,
  cap: Partial<
    Pick<Extract<NonNullable<SessionState['wait']>['next'], { action: 'pool' }>, 'cap' | 'atLeast'>
  > = {},
): void {
  const { pool, sessionId, wait } = state;
  if (pool === undefined) return;
  const since = waitsForPool(state) ? wait?.since : undefined;
  pool.checks = (pool.checks ?? 0) + 1;
  stop(state, moment, 'budget', message, { action: 'pool', sessionId, pool: pool.id, ...cap });
  if (state.wait !== null && since !== undefined) state.wait.since = since;
}

/** Issues a request to the pool. @param reserve - what the next model call can cost; `null`: it asks for nothing */
function drawWith(
  state: SessionState,
  pool: PoolShare,
  reserve: { nanoUsd: number; tokens: number } | null,
): Step {
  const unpriced = state.manifest?.models.find(({ price }) => price === null)?.id;
  const need = reserve && needOf(state, reserve);
  const want = reserve && {
    ...amountOf((kind) => CALLS * needOf(state, reserve)[kind]),
    activeMs: ACTIVE_MS.want,
  };
  const input = {
    pool: pool.id,
    no: pool.no + 1,
    settled: pool.settled,
    spent: spentOf(state, pool),
    ...(need === null || want === null ? {} : { need, want, ...defined({ unpriced }) }),
    ...(hasTold(state, pool) ? {} : { caps: capsOf(state) }),
    ...(need !== null && pool.caps !== undefined && state.finishing ? { finish: true as const } : {}),
  };
  const summary = need === null ? `give back to pool ${pool.id}` : `draw from pool ${pool.id}`;
  const command = {
    kind: 'draw',
    seq: state.seq + 1,
    input,
    heartbeatMs: heartbeatMs(state),
    summary,
  } as const;
  return { type: 'issue', command };
}

/** What a model call can cost at most, plus what is reserved for a side answer. */
function needOf(
  { budget: { reserved } }: SessionState,
  { nanoUsd, tokens }: { nanoUsd: number; tokens: number },
): PoolAmount {
  return {
    nanoUsd: nanoUsd + reserved.nanoUsd,
    tokens: tokens + reserved.tokens,
    turns: 1,
    activeMs: ACTIVE_MS.need,
  };
}

function spentOf({ budget: { spent } }: SessionState, { before }: PoolShare): PoolAmount {
  return poolSpent(spent, before);
}

/** What a session has spent, as its pool counts it. */
export function poolSpent(
  { nanoUsd, turns, activeMs, inputTokens, outputTokens }: Spent,
  before: PoolAmount = NO_AMOUNT,
): PoolAmount {
  const own = { nanoUsd, turns, activeMs, tokens: inputTokens + outputTokens };
  return amountOf((kind) => own[kind] + before[kind]);
}
