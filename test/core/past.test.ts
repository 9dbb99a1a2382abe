/** What leaves a run, and what goes along into the next, in the pure core. */
import { expect, test } from 'vitest';
import type { StorePastResult, TakenIdsResult } from '../../src/contract/activities.ts';
import type { SessionState } from '../../src/index.ts';
import { type Advance, advance } from '../../src/session/advance.ts';
import type { Input } from '../../src/session/events.ts';
import { initialState } from '../../src/session/initial.ts';
import { readPlan } from '../../src/session/plan.ts';
import { appendMessage, hasMessage } from '../../src/session/state.ts';
import { mayBeTaken, withTaken } from '../../src/session/taken-ids.ts';
import { callsPage, messagesPage, sessionView } from '../../src/session/views.ts';
import { MOMENT, manifestOf } from './checker/scenario.ts';

const IDENTITY = { sessionId: 's', runId: 'r', firstRunId: 'r' };
const NEWEST: Extract<StorePastResult, { kind: 'stored' }>['newest'] = { key: 'k', parts: 1, digest: 'd' };

/** A session at rest after three turns, which goes on in a new run after two. */
function rested(): SessionState {
  const state = initialState(IDENTITY, { agent: 'clerk' }, MOMENT);
  state.manifest = { ...manifestOf({ name: '', tools: {}, replies: [], may: {} }), runTurns: 2 };
  for (let turn = 1; turn <= 3; turn++) {
    for (const role of ['user', 'assistant'] as const) {
      const blocks = [{ kind: 'text' as const, text: `${role} ${turn}` }];
      appendMessage(state, { id: `${role}${turn}`, role, created_at: '', blocks });
    }
  }
  state.turn = 3;
  return state;
}

function stored(state: SessionState, value: StorePastResult = { kind: 'stored', newest: NEWEST }): Input {
  const seq = state.inFlight.find(({ kind }) => kind === 'storePast')?.seq ?? 0;
  return { type: 'outcome', seq, outcome: { kind: 'storePast', result: { ok: true, value } } };
}

function kindsOf({ commands }: Advance): string[] {
  return commands.map(({ kind }) => kind);
}

test('a run that is long enough stores its past, and the session goes on in a new one', () => {
  const state = rested();
  expect(kindsOf(advance(state, [], MOMENT))).toEqual(['storePast']);
  expect(sessionView(state).phase).toBe('idle');
  expect(kindsOf(advance(state, [stored(state)], MOMENT))).toEqual(['continue']);
  expect(kindsOf(advance(state, [{ type: 'send', value: { text: 'late', id: 'late' } }], MOMENT))).toEqual(
    [],
  );

  const next = initialState({ ...IDENTITY, runId: 'r2' }, { agent: 'clerk', carried: state }, MOMENT);
  expect(next).toMatchObject({ runId: 'r2', turn: 3, position: state.position, calls: [] });
  expect(next.continuing).toBeUndefined();
  expect(next.transcript.map(({ id }) => id)).toEqual(['assistant3']);
  expect(next.inbox.map(({ id }) => id)).toEqual(['late']);
  expect(hasMessage(next, 'user1')).toBe(true);
  expect(sessionView(next)).toMatchObject({ messages: 6, lastText: 'assistant 3' });
  expect(kindsOf(advance(next, [], MOMENT))).toEqual(['model']);
  expect(next.transcript.map(({ id }) => id)).toEqual(['assistant3', 'late']);
});

test('a pause, and a cancellation, that come while the past is stored go along', () => {
  const paused = rested();
  advance(paused, [], MOMENT);
  expect(kindsOf(advance(paused, [{ type: 'pause', value: {} }], MOMENT))).toEqual([]);
  expect(kindsOf(advance(paused, [stored(paused)], MOMENT))).toEqual(['continue']);
  expect(initialState(IDENTITY, { agent: 'clerk', carried: paused }, MOMENT).paused).not.toBeNull();

  const cancelled = rested();
  advance(cancelled, [], MOMENT);
  expect(kindsOf(advance(cancelled, [{ type: 'cancel', value: {} }], MOMENT))).toEqual(['cancel']);
  expect(kindsOf(advance(cancelled, [stored(cancelled)], MOMENT))).toEqual(['continue']);
  const next = initialState(IDENTITY, { agent: 'clerk', carried: cancelled }, MOMENT);
  expect(kindsOf(advance(next, [], MOMENT))).toEqual(['close']);
});

test("a cancellation of Temporal's own ends the run that it came to, which alone can end as cancelled", () => {
  const state = rested();
  advance(state, [], MOMENT);
  const cancel: Input = { type: 'cancel', value: { by: 'temporal' } };
  expect(kindsOf(advance(state, [cancel, stored(state)], MOMENT))).toEqual(['close']);
  expect(state.status).toMatchObject({ kind: 'cancelled', by: 'temporal' });
  expect(state.continuing).toBeUndefined();
});

test('a session that is sealed for a successor does not go on in a new run', () => {
  const state = rested();
  advance(state, [], MOMENT);
  expect(kindsOf(advance(state, [{ type: 'seal', value: {} }], MOMENT))).toEqual([]);
  expect(kindsOf(advance(state, [stored(state)], MOMENT))).toEqual([]);
  expect(kindsOf(advance(state, [{ type: 'resume', value: {} }], MOMENT))).toEqual(['continue']);
});

test('a session whose past cannot be stored stays in its run, and tries again later', () => {
  const state = rested();
  advance(state, [], MOMENT);
  const refused = stored(state, { kind: 'unavailable', message: 'no' });
  expect(kindsOf(advance(state, [refused], MOMENT))).toEqual([]);
  expect(state.notices.at(-1)).toMatchObject({ kind: 'past_not_stored' });
  expect(state.transcript).toHaveLength(6);
  expect(kindsOf(advance(state, [], MOMENT))).toEqual([]);
  state.turn += 2;
  expect(kindsOf(advance(state, [], MOMENT))).toEqual(['storePast']);
});

test('a state that is too large for a new run stays, takes its messages, and goes on later', () => {
  const state = rested();
  advance(state, [], MOMENT);
  const text = 'x'.repeat(900_000);
  for (const id of ['a', 'b']) advance(state, [{ type: 'send', value: { id, text } }], MOMENT);
  expect(kindsOf(advance(state, [stored(state)], MOMENT))).toEqual(['model']);
  expect(state.continuing).toBeUndefined();
  expect(state.transcript.map(({ id }) => id)).toEqual(['assistant3', 'a', 'b']);
});

test('a large last message waits for a smaller one, but not for ever', () => {
  const state = rested();
  const blocks = [{ kind: 'text' as const, text: 'x'.repeat(100_000) }];
  appendMessage(state, { id: 'long', role: 'assistant', created_at: '', blocks });
  expect(kindsOf(advance(state, [], MOMENT))).toEqual([]);
  state.turn = 4;
  expect(kindsOf(advance(state, [], MOMENT))).toEqual(['storePast']);
});

test('pages say what is missing of them, by its index in the session', () => {
  const state = rested();
  advance(state, [], MOMENT);
  advance(state, [stored(state)], MOMENT);
  expect(messagesPage(state, { limit: 1 })).toMatchObject({
    first: 5,
    total: 6,
    items: [{ id: 'assistant3' }],
  });
  expect(messagesPage(state, { limit: 1 }).past).toBeUndefined();
  expect(messagesPage(state, { limit: 3 })).toMatchObject({ first: 5, total: 6, past: NEWEST });
  expect(messagesPage(state, { before: 3, limit: 2 })).toEqual({
    items: [],
    first: 3,
    total: 6,
    past: NEWEST,
  });
  expect(callsPage(state)).toEqual({ items: [], first: 0, total: 0 });
});

test('messages that have left the run cannot be edited, and later ones can', () => {
  const state = rested();
  advance(state, [], MOMENT);
  advance(state, [stored(state)], MOMENT);
  const next = initialState(IDENTITY, { agent: 'clerk', carried: state }, MOMENT);
  next.manifest = null;
  const { promptBytes, position } = next;
  const message = {
    id: 'e',
    role: 'user' as const,
    created_at: '',
    blocks: [{ kind: 'text' as const, text: 'e' }],
  };
  const edit = (from: number) =>
    advance(next, [{ type: 'edit', value: { transcript: { from, messages: [message] } } }], MOMENT);
  next.inFlight = [];
  expect(edit(5).refusals[0]?.message).toContain('messages before 6 belong to earlier runs');
  next.inFlight = [];
  expect(edit(6).refusals).toEqual([null]);
  expect(next.transcript.map(({ id }) => id)).toEqual(['assistant3', 'e']);
  const [one, bytes] = [next.position, next.promptBytes];
  next.inFlight = [];
  expect(edit(6).refusals).toEqual([null]);
  expect([next.position, next.promptBytes]).toEqual([one, bytes]);
  expect(next.position.count).toBe(position.count + 1);
  expect(bytes).toBeGreaterThan(promptBytes);
});

test('a plan may name a call of an earlier run as its evidence', () => {
  const step = {
    id: '1',
    title: 'pay',
    status: 'done',
    postconditions: ['paid'],
    evidence: [{ postcondition: 0, tool: 'pay' }],
  };
  expect(readPlan({ steps: [step] }, []).ok).toBe(false);
  expect(readPlan({ steps: [step] }, [], { pay: 'call_1_0' })).toMatchObject({
    ok: true,
    plan: [{ evidence: [{ call_id: 'call_1_0' }] }],
  });
});

/** A session whose earlier runs have taken the messages `m0` to `m299`. */
function remembering(): SessionState {
  const state = rested();
  for (let n = 0; n < 300; n++) {
    appendMessage(state, {
      id: `m${n}`,
      role: 'user',
      created_at: '',
      blocks: [{ kind: 'text', text: 'x' }],
    });
  }
  appendMessage(state, {
    id: 'last',
    role: 'assistant',
    created_at: '',
    blocks: [{ kind: 'text', text: 'y' }],
  });
  advance(state, [], MOMENT);
  advance(state, [stored(state)], MOMENT);
  return initialState(IDENTITY, { agent: 'clerk', carried: state }, MOMENT);
}

function found(state: SessionState, value: TakenIdsResult): Input {
  const seq = state.inFlight.find(({ kind }) => kind === 'takenIds')?.seq ?? 0;
  return { type: 'outcome', seq, outcome: { kind: 'takenIds', result: { ok: true, value } } };
}

const send = (id: string, mode?: 'interrupt'): Input => ({
  type: 'send',
  value: { id, text: 'x', ...(mode === undefined ? {} : { mode }) },
});

test('a message whose id an earlier run may have taken is looked up first, and a repeated one is dropped', () => {
  const state = remembering();
  expect(state.past?.messageIds).toHaveLength(200);
  expect(kindsOf(advance(state, [send('m299')], MOMENT))).toEqual([]);
  expect(state.inbox).toEqual([]);
  expect(kindsOf(advance(state, [send('m7', 'interrupt')], MOMENT))).toEqual(['takenIds']);
  expect([state.interrupted, sessionView(state).phase]).toEqual([false, 'thinking']);
  // What comes meanwhile waits, in its order.
  expect(kindsOf(advance(state, [send('new'), send('m8')], MOMENT))).toEqual([]);
  const first = advance(state, [found(state, { kind: 'found', taken: ['m7'], fresh: [] })], MOMENT);
  expect(kindsOf(first)).toEqual(['takenIds']);
  expect(state.inbox.map(({ id }) => id)).toEqual(['new', 'm8']);
  // The filter may be wrong: the look-up decides.
  const second = advance(state, [found(state, { kind: 'found', taken: [], fresh: ['m8'] })], MOMENT);
  expect(kindsOf(second)).toEqual(['model']);
  expect(state.transcript.map(({ id }) => id)).toEqual(['last', 'new', 'm8']);
});

test('a message is taken, with a notice, when what earlier runs have taken cannot be read', () => {
  const state = remembering();
  advance(state, [send('m7')], MOMENT);
  const unread = advance(state, [found(state, { kind: 'unavailable', message: 'gone' })], MOMENT);
  expect(kindsOf(unread)).toEqual(['model']);
  expect(state.notices.at(-1)).toMatchObject({ kind: 'message_unchecked' });
});

test('a filter of taken ids knows each of them, hardly another, and does not grow', () => {
  const ids = [...Array(5_000).keys()].map((n) => `id-${n}`);
  const filter = withTaken(withTaken(undefined, ids.slice(0, 2_000)), ids.slice(2_000));
  expect(ids.filter((id) => !mayBeTaken(filter, id))).toEqual([]);
  expect(ids.filter((id) => mayBeTaken(filter, `new ${id}`)).length).toBeLessThan(50);
  expect(filter).toHaveLength(12_000);
  expect(mayBeTaken(undefined, 'id-1')).toBe(false);
});
