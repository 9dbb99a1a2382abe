/** What leaves a run, and what goes along into the next, in the pure core. */
import { expect, test } from 'vitest';
import type { StorePastResult, TakenIdsResult } from '../../src/contract/activities.ts';
import type { Manifest, SessionState, ToolCall } from '../../src/index.ts';
import { type Advance, advance } from '../../src/session/advance.ts';
import type { Input, Moment } from '../../src/session/events.ts';
import { initialState } from '../../src/session/initial.ts';
import { readPlan } from '../../src/session/plan.ts';
import { appendMessage, freshCall, hasMessage } from '../../src/session/state.ts';
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

test('the ids that clients chose are remembered, and those that the session gave are not', () => {
  const state = rested();
  for (const [n, id] of ['msg_client', 'msg_7'].entries()) {
    const message = state.transcript[2 * n];
    if (message !== undefined) message.id = id;
  }
  advance(state, [], MOMENT);
  const old = structuredClone(state);
  advance(state, [stored(state, { kind: 'stored', newest: NEWEST, allIds: true })], MOMENT);
  expect(state.past?.messageIds).toEqual(['msg_client', 'user3']);
  // As older workers have recorded it.
  advance(old, [stored(old)], MOMENT);
  expect(old.past?.messageIds).toEqual(['user3']);
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

/** A session in the middle of its fourth turn, with a call in each status. Its sessions may go on in a new run then. */
function waiting(...kinds: ToolCall['status']['kind'][]): SessionState {
  const state = rested();
  const { tools } = manifestOf({ name: '', tools: { pay: {} }, replies: [], may: {} });
  state.manifest = { ...(state.manifest as Manifest), tools, runsAtRest: true };
  state.turn = 4;
  const calls = kinds.map((kind, i) => ({
    ...freshCall(`call_4_${i}`, state, 'pay', { i }),
    effect: 'mutate' as const,
    status: { kind, reason: '', expiresAt: null } as ToolCall['status'],
  }));
  const blocks = calls.map(({ id, name, args }) => ({ kind: 'tool_call' as const, id, name, args }));
  appendMessage(state, { id: 'asks', role: 'assistant', created_at: '', blocks });
  state.calls = [freshCall('call_3_0', state, 'pay', {}), ...calls];
  state.batch = calls.map(({ id }) => id);
  return state;
}

/** What the next run begins with. */
function nextRun(state: SessionState): SessionState {
  const carried = structuredClone(state);
  return initialState({ ...IDENTITY, runId: 'r2' }, { agent: 'clerk', carried }, MOMENT);
}

test('a session that waits in the middle of a turn goes on in a new run with all calls of the turn', () => {
  const state = waiting('unknown', 'approval', 'stuck', 'ready');
  const { batch, calls } = structuredClone(state);
  // It looks for the missing tool in half a second.
  expect(kindsOf(advance(state, [], MOMENT))).toEqual(['timer', 'storePast']);
  expect(sessionView(state).phase).toBe('unknown_effect');
  expect(kindsOf(advance(state, [stored(state)], MOMENT))).toEqual(['continue']);
  const next = nextRun(state);
  expect(next).toMatchObject({ batch, calls: calls.slice(1), inFlight: [], past: { calls: 1, messages: 6 } });
  expect(sessionView(next)).toMatchObject({ calls: 5, messages: 7, pending: [{}, {}, {}] });
  const later = { ...MOMENT, now: MOMENT.now + 200 };
  expect(advance(next, [], later).commands).toMatchObject([{ kind: 'timer', ms: 300 }]);
  expect(next.timers).toBeUndefined();
});

test('a session that waits stays in its run by the rules of an earlier version', () => {
  const state = waiting('unknown');
  delete state.manifest?.runsAtRest;
  expect(kindsOf(advance(state, [], MOMENT))).toEqual([]);
});

test('a timer runs on in the next run, however often its session goes on', () => {
  let state = waiting('settling');
  expect(advance(state, [], MOMENT).commands).toMatchObject([{ kind: 'timer', ms: 5_000 }, {}]);
  for (const [passed, left] of [
    [2_000, 3_000],
    [4_000, 1_000],
    [9_000, 1],
  ] as const) {
    advance(state, [stored(state)], MOMENT);
    state = nextRun(state);
    const moment = { ...MOMENT, now: MOMENT.now + passed, historyEvents: 3_000 };
    const { commands } = advance(state, [], moment);
    expect(commands).toMatchObject([{ kind: 'timer', ms: left }, { kind: 'storePast' }]);
  }
});

test('what comes while the past is stored is applied, and acted on in the next run', () => {
  const state = waiting('approval', 'unknown');
  advance(state, [], MOMENT);
  const { id: callId, argsDigest } = state.calls[1] as ToolCall;
  const approve: Input = { type: 'decide', value: { callId, argsDigest, decision: { decision: 'approve' } } };
  expect(kindsOf(advance(state, [approve, { type: 'pause', value: {} }], MOMENT))).toEqual([]);
  expect(kindsOf(advance(state, [stored(state), { type: 'resume', value: {} }], MOMENT))).toEqual([
    'continue',
  ]);
  expect(kindsOf(advance(nextRun(state), [], MOMENT))).toEqual(['tool']);
});

test('an edit that comes while the past is stored is checked in the run that its update waits in', () => {
  const state = waiting('approval');
  advance(state, [], MOMENT);
  const { id: callId, argsDigest } = state.calls[1] as ToolCall;
  const decision = { decision: 'edit', args: { i: 7 } } as const;
  const edit: Input = { type: 'decide', value: { callId, argsDigest, decision } };
  expect(kindsOf(advance(state, [edit], MOMENT))).toEqual(['prepare']);
  expect(kindsOf(advance(state, [stored(state)], MOMENT))).toEqual([]);
  const value = { name: 'pay', args: { i: 7 }, identity: { i: 7 } };
  const seq = state.inFlight[0]?.seq ?? 0;
  const checked: Input = { type: 'outcome', seq, outcome: { kind: 'prepare', result: { ok: true, value } } };
  expect(kindsOf(advance(state, [checked], MOMENT))).toEqual(['continue']);
});

test('a cancellation in the middle of a turn ends the turn in its run', () => {
  const state = waiting('approval');
  advance(state, [], MOMENT);
  expect(kindsOf(advance(state, [stored(state), { type: 'cancel', value: {} }], MOMENT))).toEqual(['close']);
  expect(state.status.kind).toBe('cancelled');
});

test('a session that is paused goes on in a new run when its history is long, and stays otherwise', () => {
  const state = rested();
  state.manifest = { ...(state.manifest as Manifest), runsAtRest: true, runTurns: 50 };
  const pause = (moment: Moment): string[] => kindsOf(advance(state, [{ type: 'pause', value: {} }], moment));
  expect(pause(MOMENT)).toEqual([]);
  expect(pause({ ...MOMENT, historyEvents: 3_000 })).toEqual(['storePast']);
  advance(state, [stored(state)], MOMENT);
  const next = nextRun(state);
  expect(next).toMatchObject({ paused: {}, pauses: [{ resumedAt: null }] });
  // A session without a turn since has new events all the same.
  expect(kindsOf(advance(next, [], { ...MOMENT, historyEvents: 3_000 }))).toEqual(['storePast']);
});

test('a definition of nearly a megabyte does not make a session go on in a new run at every turn', () => {
  const state = rested();
  const manifest = { ...(state.manifest as Manifest), runsAtRest: true as const, runTurns: 50 };
  state.manifest = { ...manifest, instructions: 'x'.repeat(990_000) };
  const at = (historyBytes: number): string[] => kindsOf(advance(state, [], { ...MOMENT, historyBytes }));
  expect(at(1_100_000)).toEqual([]);
  expect(at(1_900_000)).toEqual([]);
  expect(at(2_100_000)).toEqual(['storePast']);
});

test('a session whose history is full because its past could not be stored goes on in a new run when it is resumed', () => {
  const state = waiting();
  state.transcript.pop();
  appendMessage(state, {
    id: 'user4',
    role: 'user',
    created_at: '',
    blocks: [{ kind: 'text', text: 'more' }],
  });
  const full = { ...MOMENT, historyEvents: 15_000 };
  advance(state, [], full);
  advance(state, [stored(state, { kind: 'unavailable', message: 'no' })], full);
  expect(state.wait?.reason).toBe('history_limit');
  expect(kindsOf(advance(state, [{ type: 'resume', value: {} }], full))).toEqual(['storePast']);
  advance(state, [stored(state)], full);
  expect(kindsOf(advance(nextRun(state), [], MOMENT))).toEqual(['model']);
});

test('the last answer is shown when it has left the run', () => {
  const state = rested();
  state.manifest = { ...(state.manifest as Manifest), runsAtRest: true };
  const summary = { from: 0, before: 5, bytes: 10 };
  const blocks = [{ kind: 'text' as const, text: 'in short' }];
  appendMessage(state, { id: 'summary', role: 'user', created_at: '', blocks, summary });
  advance(state, [], MOMENT);
  advance(state, [stored(state)], MOMENT);
  expect(sessionView(nextRun(state)).lastText).toBe('assistant 3');
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

test('a page that is cut short within the run does not go on in earlier runs', () => {
  const state = rested();
  advance(state, [], MOMENT);
  advance(state, [stored(state)], MOMENT);
  for (const id of ['large1', 'large2', 'large3']) {
    const blocks = [{ kind: 'text' as const, text: 'x'.repeat(700_000) }];
    appendMessage(state, { id, role: 'user', created_at: '', blocks });
  }
  const page = messagesPage(state, { limit: 8 });
  expect(page.items.map(({ id }) => id)).toEqual(['large2', 'large3']);
  expect(page).toMatchObject({ first: 7, total: 9 });
  // The client would return the messages of earlier runs next to these, without `large1`.
  expect(page.past).toBeUndefined();
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
