/**
 * The limiter of one key. Pure: the caller gives the time, in milliseconds.
 *
 * It counts a request from its grant until one window after the provider certainly had it. So no window holds more than
 * the limit, as long as requests stay within their estimates. What exceeds an estimate also counts, and delays later
 * requests. Tenants are served by start-time fair queueing: each tenant has a virtual time that advances with its share
 * of the limit, and the tenant that is furthest behind comes next. Nobody overtakes that tenant, so a large request
 * does not starve.
 *
 * Once the limit was full, the limiter spreads what becomes free evenly over the window. Otherwise it would give out a
 * whole window at one moment, and a tenant with few sessions could not ask often enough for its share.
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

/** How long a called session may take to ask again. */
const CALL_MS = 30_000;
/** A session is called at most this long before there is room, because it takes a while to ask again. */
const LEAD_MS = 3_000;
/** The share of the limit that may be given out at once, after the limit was full. */
const BURST = 0.05;

/** Takes what a worker tells. @returns the answer to the worker, and the other sessions whose turn it is now */
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

/** Sets the limit that a worker tells. */
function setLimit(state: RateState, limit: WindowLimit): void {
  if (limit.fromHeaders === true) state.told = limit;
  else {
    delete state.told;
    delete state.learned;
  }
  state.limit = limitWith(limit, state.learned);
}

/** Takes what the provider has said. The settlements of the exchange must have been counted before. */
function hear(state: RateState, said: RateSaid, now: number): void {
  if (state.told === undefined) return;
  // So far the pace was based on a guess.
  if (state.learned === undefined) delete state.paced;
  state.learned = learnLimits(state.learned, said);
  state.limit = limitWith(state.told, state.learned);
  for (const open of state.open) if (said.answered.includes(open.id)) open.answered = true;
  const { learned: _, ...own } = state;
  // The provider does not count requests that it has not seen yet.
  const used = usedBy({ ...own, called: [], open: own.open.filter(({ answered }) => answered) });
  learnLeft(state.learned, { said, limit: state.limit, used, now });
  // The limit may have shrunk: a session that asks for more than the whole limit would wait for ever.
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

/** When {@link serve} can call the next session, or `null` while nobody waits. */
export function nextAt(state: RateState): number | null {
  const next = nextOf(state);
  if (next === undefined) return null;
  const { share: left = 0, at: since = 0 } = state.paced ?? {};
  const pacedUntil = left < 0 ? since - left * state.limit.windowMs : 0;
  const at = roomAt(state, next.tokens) - leadOf(state);
  return Math.max(at, state.backOffUntil, Math.ceil(pacedUntil));
}

/** Whether nothing counts, nobody waits, and the provider does not refuse requests. */
export function isAtRest({ counted, open, called, waiting, backOffUntil }: RateState, now: number): boolean {
  return counted.length + open.length + called.length + waiting.length === 0 && backOffUntil <= now;
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

/** Lets a session wait for its turn. It waits once, however often it asks; its newest demand counts. */
function join(state: RateState, { id, sessionId, tenant, tokens: estimate }: RateDemand): void {
  if (state.open.some((open) => open.id === id)) return;
  // A larger demand would wait for ever.
  const tokens = Math.min(estimate, state.limit.tokens ?? estimate);
  const known = [...state.waiting, ...state.called].find((other) => other.sessionId === sessionId);
  if (known === undefined) state.waiting.push({ sessionId, tenant, tokens });
  else if (!state.called.includes(known)) known.tokens = tokens;
  else if (tokens > known.tokens) {
    // The session asks for more than it was called for, so it waits again, as the next of its tenant.
    cancelCall(state, known);
    state.waiting.unshift({ sessionId, tenant, tokens });
  }
}

/** Grants a demand whose session was called. @returns from when on the request may be sent, or `null` */
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
    // The room that was expected did not become free: the session waits again, as the next of its tenant.
    cancelCall(state, call);
    state.waiting.unshift({ sessionId, tenant, tokens });
    return null;
  }
  state.called.splice(state.called.indexOf(call), 1);
  state.open.push({ id, tenant, tokens, at });
  return at;
}

/** How early a session is called. Shorter for a short window, because a called session keeps others from its room. */
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
  // The request was sent within START_MS, so the provider had it by then.
  const at = Math.min(Math.max(open.at, now - agoMs), open.at + START_MS);
  count(state, at, used);
}

function leave(state: RateState, sessionId: string): void {
  state.waiting = state.waiting.filter((waiting) => waiting.sessionId !== sessionId);
  const call = state.called.find((called) => called.sessionId === sessionId);
  if (call !== undefined) cancelCall(state, call);
}

/** Takes a call back, and credits the tenant with what the session did not use. */
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
