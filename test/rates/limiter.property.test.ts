/** The limiter of a key under any demands: it never exceeds the limit, is fair, and lets nobody starve. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RateSettlement, WindowLimit } from '../../src/contract/rates.ts';
import { exchange, isAtRest, nextAt, rateView, serve } from '../../src/rates/limiter.ts';
import { newRates, type RateState } from '../../src/rates/rate-state.ts';
import '../core/seed.ts';

const RUNS = { numRuns: Number(process.env['PERDURE_RUNS'] ?? 200) };

/** A session that sends one request after the other. */
interface Caller {
  sessionId: string;
  tenant: string;
  /** What its requests use, and what was estimated. */
  tokens: number;
  estimate: number;
  requests: number;
  /** How long a request takes to reach the provider, and the provider to answer. */
  wireMs: number;
  answerMs: number;
  /** Its worker dies with this request. */
  diesWith?: number;
}

interface Sent {
  at: number;
  tenant: string;
  tokens: number;
}

/** Runs callers against a limiter, as workers do: a call asks again, a grant is sent, an answer is settled. */
function simulate(callers: readonly Caller[], limit: WindowLimit, until = Number.POSITIVE_INFINITY) {
  // As the workflow carries it into a new run.
  let state: RateState = newRates();
  const sent: Sent[] = [];
  const done = new Map<string, number>();
  const events: { at: number; run: (now: number) => void }[] = [];
  const plan = (at: number, run: (now: number) => void): void => {
    events.push({ at, run });
  };
  let ids = 0;
  const tell = (
    now: number,
    demands: readonly Caller[],
    settled: RateSettlement[] = [],
    left: string[] = [],
  ) => {
    state = JSON.parse(JSON.stringify(state)) as RateState;
    const asked = demands.map((caller) => ({ caller, id: `r${ids++}` }));
    const { answer, called } = exchange(
      state,
      {
        limit,
        settled,
        left,
        demands: asked.map(({ id, caller: { sessionId, tenant, estimate } }) => {
          return { id, sessionId, tenant, tokens: estimate };
        }),
      },
      now,
    );
    for (const { caller, id } of asked) {
      const granted = answer.granted.find((each) => each.id === id);
      if (granted !== undefined) send(caller, id, now + granted.afterMs);
    }
    call(called, now);
  };
  const call = (called: readonly string[], now: number): void => {
    for (const sessionId of called) {
      const caller = callers.find((each) => each.sessionId === sessionId);
      if (caller !== undefined) plan(now + 20, (then) => tell(then, [caller]));
    }
  };
  const send = (caller: Caller, id: string, now: number): void => {
    const { sessionId, tenant, tokens, wireMs, answerMs } = caller;
    const number = done.get(sessionId) ?? 0;
    done.set(sessionId, number + 1);
    const arrives = now + wireMs;
    sent.push({ at: arrives, tenant, tokens });
    const again = number + 1 < caller.requests;
    if (number === caller.diesWith) {
      // Nothing is settled. Another worker asks again later.
      if (again) plan(arrives + 5_000, (then) => tell(then, [caller]));
      return;
    }
    plan(arrives + answerMs, (then) => tell(then, again ? [caller] : [], [{ id, agoMs: answerMs, tokens }]));
  };
  for (const [i, caller] of callers.entries()) plan(i, (now) => tell(now, [caller]));
  let now = 0;
  let steps = 0;
  for (;;) {
    const wakes = nextAt(state);
    const next = events.reduce((first, { at }) => Math.min(first, at), Number.POSITIVE_INFINITY);
    const at = Math.min(next, wakes === null ? Number.POSITIVE_INFINITY : Math.max(now + 1, wakes));
    if (at === Number.POSITIVE_INFINITY || at > until) break;
    now = at;
    for (const event of events.filter((each) => each.at <= now)) {
      events.splice(events.indexOf(event), 1);
      event.run(now);
    }
    call(serve(state, now), now);
    if (++steps > 200_000) throw new Error(`it does not end: ${JSON.stringify(rateView('key', state, now))}`);
  }
  return { sent, done, state, now };
}

function mostInWindow(sent: readonly Sent[], windowMs: number): { requests: number; tokens: number } {
  const most = { requests: 0, tokens: 0 };
  for (const { at } of sent) {
    const within = sent.filter((other) => other.at >= at && other.at < at + windowMs);
    most.requests = Math.max(most.requests, within.length);
    most.tokens = Math.max(
      most.tokens,
      within.reduce((sum, { tokens }) => sum + tokens, 0),
    );
  }
  return most;
}

const caller = fc.record(
  {
    tenant: fc.constantFrom('', 'a', 'b', '__proto__'),
    tokens: fc.integer({ min: 1, max: 900 }),
    estimate: fc.integer({ min: 0, max: 2_000 }),
    requests: fc.integer({ min: 1, max: 4 }),
    wireMs: fc.nat(500),
    answerMs: fc.nat(15_000),
    diesWith: fc.nat(3),
  },
  { requiredKeys: ['tenant', 'tokens', 'estimate', 'requests', 'wireMs', 'answerMs'] },
);
const limits: fc.Arbitrary<WindowLimit> = fc.record(
  {
    windowMs: fc.constantFrom(1_000, 10_000, 60_000),
    requests: fc.integer({ min: 1, max: 20 }),
    tokens: fc.integer({ min: 1_000, max: 4_000 }),
  },
  { requiredKeys: ['windowMs', 'tokens'] },
);

test('no window holds more than the limit, and every request is sent in the end', () => {
  fc.assert(
    fc.property(fc.array(caller, { minLength: 1, maxLength: 12 }), limits, (given, limit) => {
      const callers = given.map((each, i) => ({
        ...each,
        // A request that uses more than its estimate is another test.
        estimate: Math.max(each.tokens, each.estimate),
        sessionId: `s${i}`,
      }));
      const { sent, done, state } = simulate(callers, limit);
      const most = mostInWindow(sent, limit.windowMs);
      expect(most.tokens).toBeLessThanOrEqual(limit.tokens ?? 0);
      expect(most.requests).toBeLessThanOrEqual(limit.requests ?? Number.POSITIVE_INFINITY);
      for (const { sessionId, requests } of callers) expect(done.get(sessionId)).toBe(requests);
      serve(state, 1e12);
      expect(isAtRest(state, 1e12)).toBe(true);
      expect(state.served).toEqual([]);
    }),
    RUNS,
  );
});

const LIMIT = { windowMs: 60_000, tokens: 60_000 };

function tenant(name: string, sessions: number, more: Partial<Caller> = {}): Caller[] {
  return Array.from({ length: sessions }, (_, i) => ({
    sessionId: `${name}${i}`,
    tenant: name,
    tokens: 300,
    estimate: 300,
    requests: Number.POSITIVE_INFINITY,
    wireMs: 20,
    answerMs: 500,
    ...more,
  }));
}

function usedBy(sent: readonly Sent[], name: string): number {
  return sent.filter((each) => each.tenant === name).reduce((sum, { tokens }) => sum + tokens, 0);
}

test('two tenants with many and with few sessions get equal shares of the whole limit', () => {
  const minutes = 5;
  const callers = [...tenant('many', 190), ...tenant('few', 10, { tokens: 700, estimate: 1_500 })];
  const all = simulate(callers, LIMIT, (minutes + 1) * 60_000).sent;
  expect(mostInWindow(all, LIMIT.windowMs).tokens).toBeLessThanOrEqual(LIMIT.tokens);
  // Until the limit is full for the first time, everybody gets what they ask for.
  const sent = all.filter(({ at }) => at >= LIMIT.windowMs);
  const [many, few] = [usedBy(sent, 'many'), usedBy(sent, 'few')];
  expect((many + few) / (minutes * LIMIT.tokens)).toBeGreaterThan(0.95);
  expect(Math.abs(many - few) / (many + few)).toBeLessThan(0.1);
});

test('a tenant that was away has no credit, and none that it must pay back', () => {
  const callers = [...tenant('early', 50), ...tenant('late', 50)];
  const late = callers.filter((each) => each.tenant === 'late');
  const early = callers.filter((each) => each.tenant === 'early');
  const alone = simulate(early, LIMIT, 300_000);
  expect(usedBy(alone.sent, 'early') / (5 * LIMIT.tokens)).toBeGreaterThan(0.95);
  // The state after five minutes of one tenant alone goes on with both.
  const { state, now } = alone;
  for (const { sessionId, tenant: name, tokens } of late)
    exchange(
      state,
      { limit: LIMIT, settled: [], left: [], demands: [{ id: sessionId, sessionId, tenant: name, tokens }] },
      now,
    );
  const called = Array.from({ length: 30 }, (_, i) => serve(state, now + 30_000 + i * 1_000)).flat();
  expect(called.length).toBeGreaterThan(40);
  const share = called.filter((id) => id.startsWith('late')).length / called.length;
  expect(share).toBeGreaterThan(0.4);
  expect(share).toBeLessThan(0.6);
});

test('a request as large as the limit is not overtaken for ever', () => {
  const callers = [
    ...tenant('small', 50),
    ...tenant('large', 1, { tokens: 60_000, estimate: 60_000, requests: 1 }),
  ];
  const { sent } = simulate(callers, LIMIT, 300_000);
  expect(usedBy(sent, 'large')).toBe(60_000);
});

test('what exceeds its estimate is charged, and delays what comes after it', () => {
  const callers = tenant('a', 50, { tokens: 600, estimate: 500 });
  const minutes = 10;
  const { sent } = simulate(callers, LIMIT, minutes * 60_000);
  expect(usedBy(sent, 'a')).toBeLessThanOrEqual(minutes * LIMIT.tokens * 1.1);
});

test('a 429 holds back the whole key, and a session that leaves loses its turn at once', () => {
  const state = newRates();
  const demand = (sessionId: string, tokens = 60_000) => ({
    id: `of ${sessionId}`,
    sessionId,
    tenant: '',
    tokens,
  });
  const tell = (now: number, more: Partial<Parameters<typeof exchange>[1]>) =>
    exchange(state, { limit: LIMIT, settled: [], left: [], demands: [], ...more }, now);
  expect(tell(0, { demands: [demand('first')] }).answer.granted).toEqual([{ id: 'of first', afterMs: 0 }]);
  const refused: RateSettlement = { id: 'of first', agoMs: 0, tokens: 0, backOffMs: 5_000 };
  const second = tell(1, { demands: [demand('second')], settled: [refused] });
  expect(second.answer).toEqual({ granted: [], queued: [{ id: 'of second', ahead: 0 }] });
  expect(nextAt(state)).toBe(5_001);
  expect(serve(state, 5_000)).toEqual([]);
  expect(serve(state, 5_001)).toEqual(['second']);
  expect(tell(5_002, { demands: [demand('third')] }).answer.granted).toEqual([]);
  expect(tell(5_003, { left: ['second'] }).called).toEqual(['third']);
});

test('a limiter that nobody asks stays until the provider takes requests again', () => {
  const state = newRates();
  const demands = [{ id: 'r', sessionId: 's', tenant: '', tokens: 1 }];
  exchange(state, { limit: LIMIT, settled: [], left: [], demands }, 0);
  const refused: RateSettlement = { id: 'r', agoMs: 0, tokens: 0, backOffMs: 3_600_000 };
  exchange(state, { limit: LIMIT, settled: [refused], left: [], demands: [] }, 1);
  serve(state, 3_600_000);
  expect(isAtRest(state, 3_600_000)).toBe(false);
  expect(isAtRest(state, 3_600_001)).toBe(true);
});

test('what others use of a key is kept free until the provider says that it is', () => {
  const limit: WindowLimit = { windowMs: 60_000, fromHeaders: true };
  const state = newRates();
  const none = { demands: [], settled: [], left: [] };
  const demandOf = (id: string, tokens: number) => ({ id, sessionId: id, tenant: '', tokens });
  const ask = (id: string, tokens: number, now: number) =>
    exchange(state, { ...none, limit, demands: [demandOf(id, tokens)] }, now).answer;
  const hear = (remaining: number, now: number) =>
    exchange(
      state,
      {
        ...none,
        limit,
        said: { agoMs: 0, answered: ['a'], tokens: { limit: 1_000, remaining, resetMs: 20_000 } },
      },
      now,
    );
  expect(ask('a', 100, 0)).toMatchObject({ granted: [{ id: 'a' }], unlearned: true });
  // 100 are ours. Others have used 600.
  expect(hear(300, 1_000).answer).toMatchObject({ limit: { ...limit, tokens: 1_000 } });
  expect(ask('b', 400, 2_000).granted).toEqual([]);
  expect(ask('c', 2_000, 2_000).granted).toEqual([]);
  expect(rateView('key', state, 2_000).used.tokens).toBe(700);
  // The provider says that it is free, before the time that it had said.
  expect(hear(900, 3_000).called).toEqual(['b']);
  expect(hear(300, 4_000).called).toEqual([]);
  expect(rateView('key', state, 4_000).used.tokens).toBe(1_100);
  // A prompt that is larger than the limit has the whole limit once nothing else counts.
  expect(nextAt(state)).toBeGreaterThan(24_000 - 3_000);
  expect(exchange(state, { ...none, limit: LIMIT }, 200_000).answer.limit).toBeUndefined();
  expect(rateView('key', state, 200_000).limit).toEqual(LIMIT);
});
