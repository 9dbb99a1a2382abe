/**
 * The limiter of one key. Pure: the caller gives the time, in milliseconds.
 *
 * It counts a request from its grant until one window after the provider had it for certain, so no window holds more than
 * the limit as long as estimates are not exceeded. What exceeds them counts, too, and delays later requests. Tenants are
 * served by start-time fair queueing: each has a virtual time that advances with its share of the limit, and the one that
 * is furthest behind comes next. It is never overtaken, so a large request does not starve.
 *
 * Once the limit was full, what becomes free is given out evenly over the window. Otherwise a whole window would be given out
 * in one moment, in which a tenant with few sessions cannot ask often enough for its share.
 */
import type {
  RateAnswer,
  RateDemand,
  RateExchange,
  RateSaid,
  RateSettlement,
  RateView,
  WindowLimit,
} from '../contract/rates.ts';
import { learnLeft, learnLimits, limitWith } from './learned.ts';
import type { RateState, Waiting } from './rate-state.ts';
import { count, hasRoom, roomAt, START_MS, usedBy } from './room.ts';
import { charge, nextOf, servedOf, share, startOf } from './turns.ts';

/** How long a session that was called may take to ask again. */
const CALL_MS = 30_000;
/** How long before there is room for it a session is called, at most: it takes a while until it asks again. */
const LEAD_MS = 3_000;
/** How much of a limit that was full is given out at once. */
const BURST = 0.05;

/** Takes what a worker tells. @returns its answer, and the other sessions whose turn it is now */
export function exchange(
  state: RateState,
  { limit, said, demands, settled, left }: RateExchange,
  now: number,
): { answer: RateAnswer; called: string[] } {
  if (limit !== undefined) setLimit(state, limit);
  expire(state, now);
  for (const settlement of settled) settle(state, settlement, now);
  for (const sessionId of left) leave(state, sessionId);
  if (said !== undefined) hear(state, said, now);
  for (const demand of demands) join(state, demand);
  const called = new Set(serve(state, now));
  const answer: RateAnswer = { granted: [], queued: [] };
  if (state.told !== undefined) answer.limit = state.limit;
  if (state.told !== undefined && state.learned === undefined) answer.unlearned = true;
  for (const demand of demands) {
    called.delete(demand.sessionId);
    const startsAt = grant(state, demand, now);
    if (startsAt !== null) answer.granted.push({ id: demand.id, afterMs: Math.max(0, startsAt - now) });
    else
      answer.queued.push({
        id: demand.id,
        ahead: state.waiting.findIndex(({ sessionId }) => sessionId === demand.sessionId),
      });
  }
  return { answer, called: [...called] };
}

/** Takes the limit as a worker tells it. */
function setLimit(state: RateState, limit: WindowLimit): void {
  if (limit.fromHeaders === true) state.told = limit;
  else {
    delete state.told;
    delete state.learned;
  }
  state.limit = limitWith(limit, state.learned);
}

/** Takes what the provider has said. What was settled before counts already. */
function hear(state: RateState, said: RateSaid, now: number): void {
  if (state.told === undefined) return;
  // So far the pace was that of a guess.
  if (state.learned === undefined) delete state.paced;
  state.learned = learnLimits(state.learned, said);
  state.limit = limitWith(state.told, state.learned);
  for (const open of state.open) if (said.answered.includes(open.id)) open.answered = true;
  const { learned: _, ...own } = state;
  // What the provider has not seen yet is not in its count.
  const used = usedBy({ ...own, called: [], open: own.open.filter(({ answered }) => answered) });
  learnLeft(state.learned, { said, limit: state.limit, used, now });
  // One that asks for more than a limit that has become smaller would wait for ever.
  const { tokens: most = Number.POSITIVE_INFINITY } = state.limit;
  for (const each of [...state.waiting, ...state.called]) each.tokens = Math.min(each.tokens, most);
}

/** Calls the sessions whose turn it is. */
export function serve(state: RateState, now: number): string[] {
  expire(state, now);
  const called: string[] = [];
  if (now < state.backOffUntil) return called;
  for (let next = nextOf(state); next !== undefined; next = nextOf(state)) {
    const { tenant, tokens } = next;
    if (!hasRoom(state, usedBy(state, now + leadOf(state)), tokens)) {
      state.paced ??= { share: 0, at: now };
      return called;
    }
    if (state.paced !== undefined) {
      if (state.paced.share < 0) return called;
      state.paced.share -= share(state, tokens);
    }
    state.clock = startOf(state, tenant);
    charge(state, tenant, state.clock - (servedOf(state, tenant)?.upTo ?? 0) + share(state, tokens));
    state.waiting.splice(state.waiting.indexOf(next), 1);
    state.called.push({ ...next, until: now + CALL_MS });
    called.push(next.sessionId);
  }
  delete state.paced;
  return called;
}

/** When {@link serve} can call somebody next, or `null` while nobody waits. */
export function nextAt(state: RateState): number | null {
  const next = nextOf(state);
  if (next === undefined) return null;
  const { share: left = 0, at: since = 0 } = state.paced ?? {};
  const pacedUntil = left < 0 ? since - left * state.limit.windowMs : 0;
  const at = roomAt(state, next.tokens) - leadOf(state);
  return Math.max(at, state.backOffUntil, Math.ceil(pacedUntil));
}

/** Whether nothing counts and nobody waits. */
export function isAtRest({ counted, open, called, waiting }: RateState): boolean {
  return counted.length + open.length + called.length + waiting.length === 0;
}

export function rateView(key: string, state: RateState, now: number): RateView {
  const waiting = new Map<string, number>();
  for (const { tenant } of state.waiting) waiting.set(tenant, (waiting.get(tenant) ?? 0) + 1);
  return {
    key,
    limit: state.limit,
    used: usedBy(state),
    waiting: [...waiting].map(([tenant, sessions]) => ({ tenant, sessions })),
    backOffUntil: now < state.backOffUntil ? new Date(state.backOffUntil).toISOString() : null,
  };
}

/** A session waits once, however often it asks. Its newest demand counts. */
function join(state: RateState, { id, sessionId, tenant, tokens: estimate }: RateDemand): void {
  if (state.open.some((open) => open.id === id)) return;
  // A larger one would wait for ever.
  const tokens = Math.min(estimate, state.limit.tokens ?? estimate);
  const known = [...state.waiting, ...state.called].find((other) => other.sessionId === sessionId);
  if (known === undefined) state.waiting.push({ sessionId, tenant, tokens });
  else if (!state.called.includes(known)) known.tokens = tokens;
  else if (tokens > known.tokens) {
    // It asks for more than it was called for: it is the next of its tenant.
    cancelCall(state, known);
    state.waiting.unshift({ sessionId, tenant, tokens });
  }
}

/** Grants a demand whose session was called. @returns from when on it may be sent, or `null` */
function grant(
  state: RateState,
  { id, sessionId, tenant, tokens: estimate }: RateDemand,
  now: number,
): number | null {
  const known = state.open.find((open) => open.id === id);
  if (known !== undefined) return known.at;
  const call = state.called.find((called) => called.sessionId === sessionId);
  if (call === undefined) return null;
  const tokens = Math.min(estimate, call.tokens);
  const others = { ...state, called: [] };
  const at = Math.max(now, state.backOffUntil, roomAt(others, tokens));
  if (at > now + 2 * LEAD_MS) {
    // What was expected to become free did not: it is the next of its tenant.
    cancelCall(state, call);
    state.waiting.unshift({ sessionId, tenant, tokens });
    return null;
  }
  state.called.splice(state.called.indexOf(call), 1);
  state.open.push({ id, tenant, tokens, at });
  return at;
}

/** Not long beside a short window: a session that was called keeps others from the room that it is called for. */
function leadOf({ limit: { windowMs } }: RateState): number {
  return Math.min(LEAD_MS, windowMs / 4);
}

function settle(state: RateState, settlement: RateSettlement, now: number): void {
  const { id, agoMs, tokens, unsent, backOffMs } = settlement;
  if (backOffMs !== undefined) {
    state.backOffUntil = Math.max(state.backOffUntil, now + backOffMs);
    state.paced = { share: 0, at: now };
  }
  const index = state.open.findIndex((open) => open.id === id);
  const open = state.open[index];
  if (open === undefined) return;
  state.open.splice(index, 1);
  const used = unsent === true ? 0 : (tokens ?? open.tokens);
  const more = share(state, used) - share(state, open.tokens);
  charge(state, open.tenant, more);
  if (state.paced !== undefined) state.paced.share = Math.min(BURST, state.paced.share - more);
  if (unsent === true) return;
  // It was sent within START_MS, so the provider had it by then.
  const at = Math.min(Math.max(open.at, now - agoMs), open.at + START_MS);
  count(state, at, used);
}

function leave(state: RateState, sessionId: string): void {
  state.waiting = state.waiting.filter((waiting) => waiting.sessionId !== sessionId);
  const call = state.called.find((called) => called.sessionId === sessionId);
  if (call !== undefined) cancelCall(state, call);
}

/** Its tenant has not had what it was called for. */
function cancelCall(state: RateState, call: Waiting): void {
  state.called.splice(state.called.indexOf(call), 1);
  charge(state, call.tenant, -share(state, call.tokens));
}

function expire(state: RateState, now: number): void {
  const { windowMs } = state.limit;
  if (state.learned !== undefined)
    state.learned.others = state.learned.others.filter(({ until }) => until > now);
  state.counted = state.counted.filter(({ at }) => at + windowMs > now);
  state.open = state.open.filter(({ at }) => at + START_MS + windowMs > now);
  for (const call of state.called.filter(({ until = 0 }) => until <= now)) cancelCall(state, call);
  const due = new Set([...state.waiting, ...state.called, ...state.open].map(({ tenant }) => tenant));
  state.served = state.served.filter(({ tenant, upTo }) => upTo > state.clock || due.has(tenant));
  if (due.size === 0) {
    state.served = [];
    state.clock = 0;
  }
  const { paced } = state;
  if (paced !== undefined)
    state.paced = { share: Math.min(BURST, paced.share + (now - paced.at) / windowMs), at: now };
}
