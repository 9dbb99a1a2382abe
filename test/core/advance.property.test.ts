/** The core under anything that its inputs can be. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toJson } from '../../src/contract/json.ts';
import { chainDigest, EMPTY_DIGEST } from '../../src/contract/keys.ts';
import type { SessionState } from '../../src/index.ts';
import { advance } from '../../src/session/advance.ts';
import { usd } from '../../src/session/budget.ts';
import { commandsFor } from '../../src/session/commands.ts';
import type { Input, Moment } from '../../src/session/events.ts';
import { initialState } from '../../src/session/initial.ts';
import { phaseOf } from '../../src/session/state.ts';
import { budgetView, pageOf, pendingCalls, sessionView } from '../../src/session/views.ts';
import type { SessionInput } from '../../src/workflows/index.ts';
import { checkReserve, checkTranscript } from './checker/invariants.ts';
import { CORE } from './checker/node.ts';
import { inputsOf, start, story } from './generators.ts';
import './seed.ts';

interface Run {
  state: SessionState;
  moment: Moment;
}

function begin(input: Pick<SessionInput, 'mode' | 'budget'>): Run {
  const moment = { now: 1.7e12, historyEvents: 3, historyBytes: 1_000 };
  const message = { text: 'hello' };
  const state = initialState(
    { sessionId: 's', runId: 'r', firstRunId: 'r' },
    { agent: 'clerk', message, ...input },
    moment,
  );
  return { state, moment };
}

function proceed(run: Run, inputs: readonly Input[], later: number): ReturnType<typeof advance> {
  const { now, historyEvents, historyBytes } = run.moment;
  run.moment = { now: now + later, historyEvents: historyEvents + 5, historyBytes: historyBytes + 1_000 };
  return advance(run.state, inputs, run.moment);
}

const RUNS = { numRuns: Number(process.env['PERDURE_RUNS'] ?? 200) };
/** Commands and phases that a generator worth its name gets to. */
const SEEN = [
  'model',
  'tool',
  'reads',
  'attach',
  'verify',
  'prepare',
  'aside',
  'timer',
  'cancel',
  'close',
  'idle',
  'thinking',
  'acting',
  'approval',
  'unknown_effect',
  'waiting',
  'paused',
  'cancelling',
  'closed',
];

test('whatever comes, the core does not throw, and its state stays sound', () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(start, story, (input, happenings) => {
      const run = begin(input);
      const { state } = run;
      proceed(run, [], 0);
      for (const happened of happenings) {
        const { commands } = proceed(run, inputsOf(state, happened), happened.later);
        for (const it of [...commands.map(({ kind }) => kind), phaseOf(state)])
          seen.set(it, (seen.get(it) ?? 0) + 1);
        // The history has no trace of such a command, so that the fold would lose count.
        const issued = new Set(commands.map((it) => ('seq' in it && it.kind !== 'cancel' ? it.seq : 0)));
        expect(commands.filter((it) => it.kind === 'cancel' && issued.has(it.seq))).toEqual([]);
        checkTranscript(state);
        checkReserve(state);
        for (const amount of [
          ...Object.values(state.budget.spent),
          ...Object.values(state.budget.reserved),
        ]) {
          expect(Number.isSafeInteger(amount) && amount >= 0, `${amount} is no whole amount`).toBe(true);
        }
        if (commands.some(({ kind }) => kind === 'model')) withinCaps(state);
        const ids = [...state.transcript, ...state.inbox, ...(state.withdrawn ?? [])].map(({ id }) => id);
        expect(new Set(ids).size).toBe(ids.length);
        expect(state.pauses.filter(({ resumedAt }) => resumedAt === null).length).toBe(
          state.paused === null ? 0 : 1,
        );
        // No `undefined`, no dates: what a query, a checkpoint and a continued run hold is exactly this.
        expect(toJson(state)).toEqual(state);
        toJson(sessionView(state));
        toJson(budgetView(state));
        toJson(pageOf(state.calls));
        expect(pendingCalls(state).every(({ next }) => commandsFor(next).length > 0)).toBe(true);
      }
      let digest = EMPTY_DIGEST;
      for (const { created_at: _, ...said } of state.transcript) digest = chainDigest(digest, toJson(said));
      expect(state.position).toEqual({ count: state.transcript.length, digest });
    }),
    { numRuns: RUNS.numRuns * 2 },
  );
  // A generator that never gets a session going would prove nothing.
  expect(SEEN.filter((it) => !seen.has(it))).toEqual([]);
});

function withinCaps(state: SessionState): void {
  const { limits, spent, reserved } = state.budget;
  expect(usd(spent.nanoUsd + reserved.nanoUsd)).toBeLessThanOrEqual(limits.usd ?? Infinity);
  expect(spent.inputTokens + spent.outputTokens + reserved.tokens).toBeLessThanOrEqual(
    limits.tokens ?? Infinity,
  );
  expect(spent.turns + 1).toBeLessThanOrEqual(limits.turns ?? Infinity);
}

test('the same inputs give the same state and commands, and JSON carries a state over at any point', () => {
  fc.assert(
    fc.property(start, story, (input, happenings) => {
      const one = begin(input);
      const carried = begin(input);
      proceed(one, [], 0);
      proceed(carried, [], 0);
      for (const happened of happenings) {
        carried.state = JSON.parse(JSON.stringify(carried.state)) as SessionState;
        const inputs = inputsOf(one.state, happened);
        const untouched = structuredClone(inputs);
        const live = proceed(one, inputs, happened.later);
        expect(inputs).toEqual(untouched);
        expect(proceed(carried, untouched, happened.later)).toEqual(live);
        expect(carried.state).toEqual(one.state);
      }
    }),
    RUNS,
  );
});

test('an activation is its inputs, and then the steps that the session decides: what the checker walks', () => {
  fc.assert(
    fc.property(start, story, (input, happenings) => {
      const whole = begin(input);
      const steps = begin(input);
      for (const happened of [null, ...happenings]) {
        const inputs = happened === null ? [] : inputsOf(whole.state, happened);
        const live = proceed(whole, inputs, happened?.later ?? 0);
        steps.moment = whole.moment;
        const refusals = inputs.map((it) => CORE.evolve(steps.state, structuredClone(it), steps.moment));
        const commands = [];
        for (let step = CORE.decide(steps.state, steps.moment); step !== null; ) {
          const command = CORE.take(steps.state, step, steps.moment);
          if (command !== null) commands.push(command);
          step = CORE.decide(steps.state, steps.moment);
        }
        expect({ commands, refusals }).toEqual(live);
        expect(steps.state).toEqual(whole.state);
      }
    }),
    RUNS,
  );
});

test('a refused input changes nothing, and what was sent is there once', () => {
  fc.assert(
    fc.property(start, story, (input, happenings) => {
      const run = begin(input);
      proceed(run, [], 0);
      for (const happened of happenings) {
        const { state } = run;
        const before = structuredClone(state);
        const inputs = inputsOf(state, { ...happened, answers: [], stray: false });
        const { refusals } = proceed(run, inputs, happened.later);
        const fresh = new Set<string>();
        let sent = 0;
        const withdrawn = (state.withdrawn ?? []).length - (before.withdrawn ?? []).length;
        for (const [i, it] of inputs.entries()) {
          if (it.type !== 'send' || refusals[i] !== null) continue;
          const { id } = it.value;
          const seen =
            id !== undefined &&
            (fresh.has(id) ||
              [...before.transcript, ...before.inbox, ...(before.withdrawn ?? [])].some((m) => m.id === id));
          if (!seen) sent += 1;
          if (id !== undefined) fresh.add(id);
        }
        const count = (of: SessionState): number =>
          of.inbox.length + of.transcript.filter(({ role }) => role === 'user').length;
        expect(count(state)).toBe(count(before) + sent - withdrawn);
        if (inputs.length > 0 && refusals.every((refusal) => refusal !== null)) {
          expect(state).toEqual(before);
        }
        // And on.
        proceed(run, inputsOf(state, { ...happened, said: [], cancels: false }), 1);
      }
    }),
    RUNS,
  );
});
