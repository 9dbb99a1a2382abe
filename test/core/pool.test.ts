/** Sessions that share a pool, with the real cores: whatever is lost, repeated or killed, no cap is exceeded. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DrawInput } from '../../src/contract/activities.ts';
import type { ModelResult } from '../../src/contract/model-call.ts';
import type { DrawAnswer, PoolAmount } from '../../src/contract/pool.ts';
import { spentAtWorst } from '../../src/history/what-happened.ts';
import type { SessionState } from '../../src/index.ts';
import { closed, draw, newPool, type PoolData, poolView, setPool, wake } from '../../src/pool/pool-state.ts';
import { advance } from '../../src/session/advance.ts';
import type { Command, Input, Outcome } from '../../src/session/events.ts';
import { initialState } from '../../src/session/initial.ts';
import { poolSpent, waitsForPool } from '../../src/session/pool.ts';
import { MOMENT, manifestOf } from './checker/scenario.ts';
import './seed.ts';

const NAMES = ['a', 'b', 'c'];
/** About three times what a model call of these sessions can cost. */
const TOKENS = 1_000;

interface Run {
  state: SessionState;
  /** Commands without an outcome, by their number. */
  open: Map<number, Command>;
  /** It has ended, or was ended from outside. */
  dead: boolean;
}

interface World {
  pool: PoolData;
  runs: Map<string, Run>;
  /** Requests that a killed worker has sent, and that may still arrive. */
  late: { sessionId: string; input: DrawInput }[];
  cap: number;
}

function begin(): World {
  const pool = newPool('p');
  setPool(pool, { tokens: TOKENS, turns: 40 }, MOMENT.now);
  const world: World = { pool, runs: new Map(), late: [], cap: TOKENS };
  for (const name of NAMES) {
    const input = { agent: 'clerk', message: { text: 'go' }, pool: 'p' };
    const state = initialState({ sessionId: name, runId: name, firstRunId: name }, input, MOMENT);
    const run: Run = { state, open: new Map(), dead: false };
    world.runs.set(name, run);
    move(run, []);
  }
  return world;
}

function move(run: Run, inputs: Input[]): void {
  for (const command of advance(run.state, inputs, MOMENT).commands) {
    if (command.kind === 'cancel') {
      if (command.timer) run.open.delete(command.seq);
    } else if (command.kind === 'close') run.dead = true;
    else if (command.kind !== 'continue') run.open.set(command.seq, command);
  }
}

function end(run: Run, seq: number, outcome: Outcome): void {
  run.open.delete(seq);
  move(run, [{ type: 'outcome', seq, outcome }]);
}

/** What the `draw` activity does: it takes back what sessions held that do not run any more. */
function drawn(world: World, sessionId: string, { pool: _pool, ...input }: DrawInput): DrawAnswer {
  const ask = (): DrawAnswer => draw(world.pool, { ...input, sessionId }, MOMENT.now);
  const answer = ask();
  if (answer.kind !== 'refused') return answer;
  const dead = answer.holders.filter((holder) => world.runs.get(holder.sessionId)?.dead === true);
  for (const holder of dead) {
    const { state } = world.runs.get(holder.sessionId) as Run;
    closed(world.pool, { ...holder, spent: poolSpent(spentAtWorst(state)) }, MOMENT.now);
  }
  return dead.length === 0 ? answer : ask();
}

const lost = { ok: false, failure: { kind: 'timeout', message: 'lost' } } as const;
const usage = { inputTokens: 40, outputTokens: 20 };

/** Everything that can happen to a session now; `calm`: only what goes well. */
function actions(world: World, name: string, run: Run, calm: boolean): (() => void)[] {
  if (run.dead) return [];
  const found: (() => void)[] = [];
  for (const [seq, command] of run.open) {
    if (command.kind === 'describe') {
      const manifest = manifestOf({ name: '', tools: {}, replies: [], may: {} });
      const value = { kind: 'manifest' as const, manifest, searchAttributes: [] };
      found.push(() => end(run, seq, { kind: 'describe', result: { ok: true, value } }));
    } else if (command.kind === 'model') {
      const value: ModelResult = {
        kind: 'reply',
        blocks: [{ kind: 'text', text: 'Done.' }],
        calls: [],
        usage,
      };
      found.push(() => end(run, seq, { kind: 'model', result: { ok: true, value: structuredClone(value) } }));
      if (!calm) found.push(() => end(run, seq, { kind: 'model', result: lost }));
    } else if (command.kind === 'draw') {
      found.push(() => {
        const value = drawn(world, name, command.input);
        end(run, seq, { kind: 'draw', result: { ok: true, value } });
      });
      if (calm) continue;
      // The worker died: before the request, on the way, or before the answer was recorded. Its next attempt asks again.
      found.push(() => void world.late.push({ sessionId: name, input: command.input }));
      found.push(() => void drawn(world, name, command.input));
      found.push(() => end(run, seq, { kind: 'draw', result: lost }));
    } else if (command.kind === 'timer') found.push(() => end(run, seq, { kind: 'timer' }));
  }
  if (calm) return found;
  const { status, mode } = run.state;
  if (status.kind === 'active' && mode === 'chat') {
    found.push(() => move(run, [{ type: 'send', value: { text: 'more' } }]));
    found.push(() => move(run, [{ type: 'pause', value: {} }]));
    found.push(() => move(run, [{ type: 'resume', value: {} }]));
    found.push(() => move(run, [{ type: 'cancel', value: {} }]));
  }
  found.push(() => {
    run.dead = true;
  });
  return found;
}

/** The pool signals those who can go on. A signal may be lost. */
function tell(world: World, isLost: boolean): void {
  for (const name of wake(world.pool, MOMENT.now)) {
    const run = world.runs.get(name);
    if (!isLost && run?.dead === false) move(run, [{ type: 'pool_changed', value: { pool: 'p' } }]);
  }
}

function expectKept({ pool, runs, cap }: World): void {
  const { spent, held } = poolView(pool, MOMENT.now);
  expect(spent.tokens + held.tokens).toBeLessThanOrEqual(cap);
  let used = 0;
  for (const { state, dead } of runs.values()) {
    const { inputTokens, outputTokens } = state.budget.spent;
    const most = inputTokens + outputTokens + state.budget.reserved.tokens;
    used += most;
    if (!dead) expect(most).toBeLessThanOrEqual(state.pool?.ceiling.tokens ?? 0);
  }
  expect(used).toBeLessThanOrEqual(cap);
}

function walk(choices: readonly number[]): World {
  const world = begin();
  for (const choice of choices) {
    const all = NAMES.flatMap((name) => actions(world, name, world.runs.get(name) as Run, false));
    const more = [
      ...world.late.map((request) => () => {
        world.late = world.late.filter((other) => other !== request);
        drawn(world, request.sessionId, request.input);
      }),
      () => {
        world.cap += 100;
        setPool(world.pool, { tokens: world.cap }, MOMENT.now);
      },
    ];
    const options = [...all, ...more];
    options[choice % options.length]?.();
    tell(world, choice % 3 === 0);
    expectKept(world);
  }
  return world;
}

/** Nothing fails any more, and the cap is raised: everybody finishes. */
function calm(world: World): void {
  world.cap = 1_000_000;
  setPool(world.pool, { tokens: world.cap, turns: null }, MOMENT.now);
  for (const run of world.runs.values()) if (!run.dead) move(run, [{ type: 'resume', value: {} }]);
  for (let step = 0; step < 500; step++) {
    tell(world, false);
    const next = NAMES.flatMap((name) => actions(world, name, world.runs.get(name) as Run, true));
    if (next.length === 0) return;
    next[step % next.length]?.();
    expectKept(world);
  }
  throw new Error('the sessions do not come to rest');
}

const walks = fc.array(fc.nat(1_000), { minLength: 20, maxLength: 120 });

test('sessions that share a pool never exceed its cap, and none waits for what is there', () => {
  fc.assert(
    fc.property(walks, (choices) => {
      const world = walk(choices);
      calm(world);
      for (const { state, dead } of world.runs.values()) expect(dead || !waitsForPool(state)).toBe(true);
    }),
    { numRuns: 400 },
  );
});

test('when all has come to rest, the pool has on record what the sessions have spent, to the token', () => {
  fc.assert(
    fc.property(walks, (choices) => {
      const world = walk(choices);
      calm(world);
      // What sessions held that were ended from outside is found when somebody needs it.
      const dead = Object.entries(world.pool.holders).filter(([name]) => world.runs.get(name)?.dead);
      for (const [sessionId, { no }] of dead) {
        const { state } = world.runs.get(sessionId) as Run;
        closed(world.pool, { sessionId, no, spent: poolSpent(spentAtWorst(state)) }, MOMENT.now);
      }
      const known = [...world.runs.values()].filter(({ state }) => world.pool.holders[state.sessionId]);
      const sum = (of: (amount: PoolAmount) => number): number =>
        known.reduce((all, { state, dead: ended }) => {
          const { spent } = state.budget;
          return all + of(poolSpent(ended ? spentAtWorst(state) : spent));
        }, 0);
      const { total, held } = poolView(world.pool, MOMENT.now);
      expect(total).toMatchObject({ tokens: sum(({ tokens }) => tokens), turns: sum(({ turns }) => turns) });
      expect(total.usd * 1e9).toBeCloseTo(
        sum(({ nanoUsd }) => nanoUsd),
        0,
      );
      expect(held.tokens).toBe(0);
    }),
    { numRuns: 400 },
  );
});

test('a pool that has enough gives a session what sixteen model calls can cost', () => {
  const world = begin();
  setPool(world.pool, { tokens: 1_000_000, turns: null }, MOMENT.now);
  const run = world.runs.get('a') as Run;
  for (const act of actions(world, 'a', run, true)) act();
  const [draws] = run.open.values();
  if (draws?.kind !== 'draw') throw new Error('it does not draw');
  expect(drawn(world, 'a', draws.input).kind).toBe('granted');
  expect(poolView(world.pool, MOMENT.now).held).toMatchObject({
    tokens: 16 * (draws.input.need?.tokens ?? 0),
    turns: 16,
  });
});

test('a pool by the day begins anew at midnight of its time zone, and what is held counts for the new day', () => {
  const pool = newPool('p');
  const evening = Date.parse('2026-03-28T22:30:00Z');
  setPool(pool, { tokens: 100, period: 'day', zone: 'Europe/Berlin' }, evening);
  const amount = (tokens: number): PoolAmount => ({ nanoUsd: 0, tokens, turns: 0, activeMs: 0 });
  const ask = (no: number, settled: number, spent: number, need: number, now: number): DrawAnswer =>
    draw(
      pool,
      { sessionId: 'a', no, settled: amount(settled), spent: amount(spent), need: amount(need) },
      now,
    );
  expect(ask(1, 0, 0, 60, evening).kind).toBe('granted');
  expect(poolView(pool, evening)).toMatchObject({ ends: '2026-03-28T23:00:00.000Z', held: { tokens: 60 } });
  // The next day has 23 hours.
  const night = Date.parse('2026-03-28T23:10:00Z');
  expect(poolView(pool, night)).toMatchObject({ ends: '2026-03-29T22:00:00.000Z', held: { tokens: 60 } });
  expect(ask(2, 0, 50, 50, night)).toMatchObject({ kind: 'granted', settled: { tokens: 50 } });
  expect(ask(3, 50, 100, 1, night)).toMatchObject({ kind: 'refused', cap: 'tokens', atLeast: 101 });
  expect(wake(pool, Date.parse('2026-03-29T22:00:00Z'))).toEqual(['a']);
});

test('a pool that serves as many sessions as it may tells the next one when one of them rests', () => {
  const pool = newPool('p');
  setPool(pool, { turns: 1_000_000 }, MOMENT.now);
  const none = { nanoUsd: 0, tokens: 0, turns: 0, activeMs: 0 };
  const one = { ...none, turns: 1 };
  const ask = (sessionId: string, no = 1, need?: PoolAmount): DrawAnswer =>
    draw(pool, { sessionId, no, settled: none, spent: none, ...(need && { need }) }, MOMENT.now);
  for (let n = 1; n <= 2_000; n++) expect(ask(`s${n}`, 1, one).kind).toBe('granted');
  const message = 'pool p serves 2000 sessions at a time, and no more until one rests';
  expect(ask('next', 1, one)).toMatchObject({ kind: 'refused', message });
  expect(wake(pool, MOMENT.now)).toEqual([]);
  ask('s1', 2);
  expect(wake(pool, MOMENT.now)).toEqual(['next']);
});
