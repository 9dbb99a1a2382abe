/** The parts of a stream between two states of a session, one test for each kind. */
import { expect, test } from 'vitest';
import {
  partsBetween,
  type SessionNews,
  type Told,
  toldOf,
  toldToNewcomer,
} from '../../src/client/stream-parts.ts';
import type { ToolCall } from '../../src/contract/calls.ts';
import type { Message } from '../../src/contract/messages.ts';
import type { SessionState } from '../../src/contract/state.ts';
import { initialState } from '../../src/session/initial.ts';
import { freshCall } from '../../src/session/state.ts';

const AT = '2026-01-01T00:00:00.000Z';
const moment = { now: 0, historyEvents: 0, historyBytes: 0 };

function fresh(): SessionState {
  return initialState({ sessionId: 's', runId: 'r', firstRunId: 'r' }, { agent: 'a' }, moment);
}

function message(id: string, role: Message['role'], text: string): Message {
  return { id, role, created_at: AT, blocks: [{ kind: 'text', text }] };
}

function callOf(change: Partial<ToolCall>): ToolCall {
  return { ...freshCall('call_1_0', { turn: 1, message: 1 }, 'pay', { cents: 1 }), ...change };
}

/** The parts of a change, without the phase. */
function changed(state: SessionState, change: (state: SessionState) => void): SessionNews[] {
  const before = toldOf(state);
  change(state);
  return partsBetween(before, state).filter(({ type }) => type !== 'phase');
}

/** A session with a call in a status, and what happens when it changes. */
function callChanged(from: Partial<ToolCall>, to: Partial<ToolCall>): SessionNews[] {
  const state = fresh();
  const call = callOf(from);
  state.calls.push(call);
  state.batch = [call.id];
  return changed(state, () => Object.assign(call, structuredClone(to)));
}

test('a state without news has no parts', () => {
  const state = fresh();
  state.transcript.push(message('m', 'user', 'hello'));
  expect(partsBetween(toldOf(state), state)).toEqual([]);
});

test('message: each role, with the text of its blocks', () => {
  const news = changed(fresh(), ({ transcript }) => {
    transcript.push(message('m1', 'user', 'hello'), message('m2', 'assistant', 'hi'));
  });
  expect(news).toMatchObject([
    { type: 'message', id: 'm1', role: 'user', text: 'hello' },
    { type: 'message', id: 'm2', role: 'assistant', text: 'hi', blocks: [{ kind: 'text', text: 'hi' }] },
  ]);
});

test('call: asked after the message that asks for it, dispatched, its outcome, verified, resolved, finished', () => {
  const dispatch = { no: 1, at: AT, outcome: null };
  const running = callOf({ status: { kind: 'running' }, dispatches: [dispatch] });
  const asked = changed(fresh(), ({ transcript, calls }) => {
    transcript.push(message('m', 'assistant', ''));
    calls.push(running);
  });
  expect(asked.map(({ type }) => type)).toEqual(['message', 'call']);
  expect(asked[1]).toMatchObject({ news: ['asked', 'dispatched'], call: { id: 'call_1_0' } });

  const unknown = { ...dispatch, outcome: 'unknown' as const };
  const verifying = { status: { kind: 'verifying' as const, reason: 'lost' }, dispatches: [unknown] };
  const absent = { ...dispatch, outcome: 'absent' as const };
  const again = { status: { kind: 'running' as const }, dispatches: [absent, { ...dispatch, no: 2 }] };
  const resolution = { dispatchNo: 1, outcome: 'landed' as const, by: 'ada', at: AT };
  const done = {
    status: { kind: 'completed' as const },
    dispatches: [{ ...dispatch, outcome: 'returned' as const }],
    result: { content: 1, isError: false },
  };
  const stages: [Partial<ToolCall>, Partial<ToolCall>, string[]][] = [
    [running, { status: { kind: 'settling', reason: 'lost' } }, ['changed']],
    [running, { argsDigest: 'other' }, ['edited']],
    [running, verifying, ['outcome']],
    [verifying, again, ['outcome', 'verified', 'dispatched']],
    [verifying, { ...done, resolutions: [resolution] }, ['outcome', 'verified', 'resolved', 'finished']],
    [running, done, ['outcome', 'finished']],
    [callOf({}), { ...done, dispatches: [], replayOf: 'call_0_0' }, ['replayed']],
  ];
  for (const [from, to, news] of stages)
    expect(callChanged(from, to)).toMatchObject([{ type: 'call', news }]);
  expect(callChanged(done, { result: { content: 2, isError: false } })).toEqual([]);
});

test('approval: asked with the next step, and decided', () => {
  const waiting = { status: { kind: 'approval' as const, expiresAt: null } };
  expect(callChanged({}, waiting)).toMatchObject([
    { type: 'call', news: ['changed'] },
    { type: 'approval', state: 'asked', call: { callId: 'call_1_0', next: { action: 'decide' } } },
  ]);
  const decision = { decision: 'approve' as const, by: 'ada', at: AT };
  expect(callChanged(waiting, { status: { kind: 'ready' }, decision })).toMatchObject([
    { type: 'call' },
    { type: 'approval', state: 'decided', callId: 'call_1_0', decision },
  ]);
});

test('notice: those after the last one, also when the list has lost its oldest', () => {
  const notice = (n: number): SessionState['notices'][number] => ({ at: AT, kind: 'k', message: `${n}` });
  const state = fresh();
  for (let n = 0; n < 100; n++) state.notices.push(notice(n));
  const news = changed(state, ({ notices }) => {
    notices.push(notice(100), notice(101));
    notices.splice(0, 2);
  });
  expect(news).toEqual([100, 101].map((n) => ({ type: 'notice', notice: notice(n) })));
});

test('wait and pause: when they begin, and null when they end', () => {
  const state = fresh();
  const wait = {
    reason: 'budget',
    message: 'used up',
    since: AT,
    next: { action: 'resume', sessionId: 's' },
  } as const;
  expect(changed(state, (next) => Object.assign(next, { wait }))).toEqual([{ type: 'wait', wait }]);
  expect(changed(state, (next) => Object.assign(next, { wait: null }))).toEqual([
    { type: 'wait', wait: null },
  ]);
  const paused = { by: 'ada', at: AT, reason: 'lunch', requestedNow: false };
  expect(changed(state, (next) => Object.assign(next, { paused }))).toMatchObject([
    { type: 'pause', paused: { by: 'ada', reason: 'lunch' } },
  ]);
  expect(changed(state, (next) => Object.assign(next, { paused: null }))).toEqual([
    { type: 'pause', paused: null },
  ]);
});

test('spent: money, tokens, turns and caps, but not the time that goes by', () => {
  const state = fresh();
  expect(changed(state, ({ budget }) => Object.assign(budget.spent, { activeMs: 5 }))).toEqual([]);
  expect(changed(state, ({ budget }) => Object.assign(budget.spent, { inputTokens: 5 }))).toMatchObject([
    { type: 'spent', budget: { spent: { inputTokens: 5 } } },
  ]);
  expect(changed(state, ({ budget }) => Object.assign(budget, { limits: { usd: 2 } }))).toMatchObject([
    { type: 'spent', budget: { limits: { usd: 2 } } },
  ]);
});

test('closed and phase: the phase is the last part of a task', () => {
  const state = fresh();
  const before = toldOf(state);
  state.status = { kind: 'completed', at: AT, text: 'bye' };
  expect(partsBetween(before, state)).toMatchObject([
    { type: 'closed', status: { kind: 'completed', text: 'bye' } },
    { type: 'phase', phase: 'closed', view: { sessionId: 's' } },
  ]);
});

test('phase: told again when the session waits for another person', () => {
  const state = fresh();
  const approval = { kind: 'approval' as const, expiresAt: null };
  const calls = ['call_1_0', 'call_1_1'].map((id) => callOf({ id, status: approval }));
  state.calls.push(...calls);
  state.batch = calls.map(({ id }) => id);
  const before = toldOf(state);
  Object.assign(calls[0] ?? {}, { status: { kind: 'skipped' } });
  expect(partsBetween(before, state).at(-1)).toMatchObject({
    type: 'phase',
    view: { pending: [{ callId: 'call_1_1' }] },
  });
});

test('run: a session that went on in a new run says so, and nothing again', () => {
  const state = fresh();
  state.transcript.push(message('m1', 'user', 'hello'), message('m2', 'assistant', 'hi'));
  const before = toldOf(state);
  const next = structuredClone(state);
  next.runId = 'r2';
  next.transcript = next.transcript.slice(1);
  next.past = { messages: 1, calls: 0 } as NonNullable<SessionState['past']>;
  expect(partsBetween(before, next, 'continued')).toEqual([{ type: 'run', runId: 'r2', cause: 'continued' }]);
  next.transcript.push(message('m3', 'user', 'and?'));
  expect(partsBetween(before, next)).toMatchObject([{ type: 'message', id: 'm3' }]);
});

test('transcript: after an edit or a rewind, the messages from the first other one on are void', () => {
  const state = fresh();
  state.transcript.push(message('m1', 'user', 'hello'), message('m2', 'assistant', 'hi'));
  const news = changed(state, (next) => {
    next.transcript = [message('m1', 'user', 'hello'), message('m2', 'assistant', 'good day')];
  });
  expect(news).toMatchObject([
    { type: 'transcript', from: 1 },
    { type: 'message', id: 'm2', text: 'good day' },
  ]);
});

test('a rewound session says nothing of its transcript while the checkpoint is loaded', () => {
  const state = fresh();
  state.transcript.push(message('m1', 'user', 'hello'), message('m2', 'assistant', 'hi'));
  const before = toldOf(state);
  const next = fresh();
  next.runId = 'r2';
  next.loading = { parts: [], edits: null };
  const loading = partsBetween(before, next, 'rewound');
  expect(loading).toEqual([{ type: 'run', runId: 'r2', cause: 'rewound' }]);
  const told: Told = toldOf(next, before);
  next.loading = null;
  next.transcript = [message('m1', 'user', 'hello')];
  expect(partsBetween(told, next)).toEqual([{ type: 'transcript', from: 1 }]);
});

test('a newcomer is told what is open, and not what is past', () => {
  const state = fresh();
  state.transcript.push(message('m1', 'user', 'hello'));
  state.notices.push({ at: AT, kind: 'k', message: 'past' });
  const approval = { kind: 'approval' as const, expiresAt: null };
  state.calls.push(
    callOf({ id: 'call_1_0', status: { kind: 'completed' } }),
    callOf({ id: 'call_2_0', status: approval }),
  );
  state.batch = ['call_2_0'];
  expect(partsBetween(toldToNewcomer(state), state)).toMatchObject([
    { type: 'call', call: { id: 'call_2_0' } },
    { type: 'approval', state: 'asked', call: { callId: 'call_2_0' } },
    { type: 'phase' },
  ]);
});
