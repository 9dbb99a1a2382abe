/** What the model sees of a transcript, and when older messages are summarized, in the pure core. */
import { expect, test } from 'vitest';
import type { ModelResult } from '../../src/contract/model-call.ts';
import { bytesOf, cutOf, viewOf } from '../../src/contract/view.ts';
import type { Message, SessionState } from '../../src/index.ts';
import { advance } from '../../src/session/advance.ts';
import { applyEdit } from '../../src/session/edit.ts';
import type { Command, Input } from '../../src/session/events.ts';
import { initialState } from '../../src/session/initial.ts';
import { pinProblem } from '../../src/session/pins.ts';
import { appendMessage } from '../../src/session/state.ts';
import { MOMENT, manifestOf } from './checker/scenario.ts';

const IDENTITY = { sessionId: 's', runId: 'r', firstRunId: 'r' };
const WINDOW = { compactAt: 1_000, keep: 100 };

function said(id: string, role: Message['role'], length = 1_000): Message {
  return { id, role, created_at: '', blocks: [{ kind: 'text', text: id.padEnd(length, '.') }] };
}

/** A session of some turns that has a message to answer. */
function waiting(
  turns: number,
  contextWindow: typeof WINDOW | { keep: number } | null = WINDOW,
): SessionState {
  const state = initialState(IDENTITY, { agent: 'clerk', message: { text: 'go' } }, MOMENT);
  state.manifest = {
    ...manifestOf({ name: '', tools: {}, replies: [], may: {} }),
    ...(contextWindow === null ? {} : { contextWindow }),
  };
  for (let turn = 1; turn <= turns; turn++) {
    appendMessage(state, said(`user${turn}`, 'user'));
    appendMessage(state, said(`answer${turn}`, 'assistant'));
  }
  state.turn = turns;
  return state;
}

function modelOf(commands: readonly Command[]): Extract<Command, { kind: 'model' }> {
  const found = commands.find((command) => command.kind === 'model');
  if (found === undefined) throw new Error(`no model call in ${JSON.stringify(commands)}`);
  return found;
}

function answered(state: SessionState, value: ModelResult): Input {
  const seq = state.inFlight.find(({ kind }) => kind === 'model')?.seq ?? 0;
  return { type: 'outcome', seq, outcome: { kind: 'model', result: { ok: true, value } } };
}

const usage = { inputTokens: 700, outputTokens: 50 };
const summary = (more: Partial<Extract<ModelResult, { kind: 'compacted' }>> = {}): ModelResult => ({
  kind: 'compacted',
  before: 4,
  replaced: 4_200,
  kept: 2_100,
  text: 'They greeted.',
  usage,
  ...more,
});
const refused: ModelResult = {
  kind: 'failed',
  failure: 'context_window',
  message: 'HTTP 400: prompt is too long; the largest message is msg_0',
  maybeBilled: 0,
};

test('a prompt within the window is not compacted, and neither is one without a window', () => {
  expect(modelOf(advance(waiting(1), [], MOMENT).commands).input.compact).toBeUndefined();
  expect(modelOf(advance(waiting(9, null), [], MOMENT).commands).input.compact).toBeUndefined();
  expect(modelOf(advance(waiting(9, { keep: 100 }), [], MOMENT).commands).input.compact).toBeUndefined();
});

test('near the window the older messages are summarized first, and then the model is asked', () => {
  const state = waiting(3);
  const first = modelOf(advance(state, [], MOMENT).commands);
  expect(first).toMatchObject({ summary: 'compact before turn 4', input: { compact: { keep: 300 } } });
  expect(state.budget.reserved.tokens).toBeGreaterThan(0);

  const next = modelOf(advance(state, [answered(state, summary())], MOMENT).commands);
  expect(next.input.compact).toBeUndefined();
  expect(state.transcript.map(({ id }) => id).slice(0, 6)).toEqual(
    [1, 2, 3].flatMap((n) => [`user${n}`, `answer${n}`]),
  );
  const last = state.transcript.at(-1);
  expect(last).toMatchObject({ role: 'user', summary: { from: 0, before: 4 } });
  expect(viewOf(state.transcript).map(({ id }) => id)).toEqual([last?.id, 'user3', 'answer3', 'msg_0']);
  expect(state.promptBytes).toBe(2_100 + bytesOf([last as Message]));
  // It costs tokens, and is no turn.
  expect(state.budget.spent).toMatchObject({ turns: 0, inputTokens: 700, outputTokens: 50 });
  expect(state.turn).toBe(3);
});

test('the provider counts the tokens, and only what is new is estimated', () => {
  const state = waiting(3);
  state.measured = { bytes: state.promptBytes, tokens: 500 };
  expect(modelOf(advance(state, [], MOMENT).commands).input.compact).toBeUndefined();
  const full = waiting(3);
  full.measured = { bytes: full.promptBytes, tokens: 999 };
  expect(modelOf(advance(full, [], MOMENT).commands).input.compact).toBeDefined();
});

test('a prompt that the model refuses as too large is compacted once; a second refusal is a wait', () => {
  const state = waiting(3, { keep: 100 });
  advance(state, [], MOMENT);
  const again = modelOf(advance(state, [answered(state, refused)], MOMENT).commands);
  expect(again.input.compact).toEqual({ keep: 300 });
  expect(
    modelOf(advance(state, [answered(state, summary())], MOMENT).commands).input.compact,
  ).toBeUndefined();
  expect(advance(state, [answered(state, refused)], MOMENT).commands).toEqual([]);
  expect(state.wait).toMatchObject({
    reason: 'context_window',
    message: expect.stringMatching(/largest message is msg_0.*larger window.*resume/),
  });
  expect(advance(state, [], MOMENT).commands).toEqual([]);
  // A person has done something about it.
  const resumed = advance(state, [{ type: 'resume', value: {} }], MOMENT);
  expect(modelOf(resumed.commands).input.compact).toBeUndefined();
});

test('a prompt that the model can only read in parts is compacted in several steps', () => {
  const state = waiting(3, { keep: 100 });
  advance(state, [], MOMENT);
  advance(state, [answered(state, refused)], MOMENT);
  const rest = advance(state, [answered(state, summary({ before: 2, more: true }))], MOMENT);
  expect(modelOf(rest.commands).input.compact).toBeDefined();
  advance(state, [answered(state, summary({ before: 4 }))], MOMENT);
  expect(state.transcript.at(-1)?.summary).toMatchObject({ from: 2, before: 4 });
  expect(state.inFlight).toMatchObject([{ kind: 'model' }]);
  expect(state.inFlight[0]?.compact).toBeUndefined();
});

test('messages that nothing can be taken from are sent as they are', () => {
  const state = waiting(3);
  advance(state, [], MOMENT);
  const none: ModelResult = { kind: 'uncompacted', message: 'nothing can be summarized' };
  expect(modelOf(advance(state, [answered(state, none)], MOMENT).commands).input.compact).toBeUndefined();
  expect(state.notices.at(-1)).toMatchObject({ kind: 'not_compacted' });
});

test('a summary that is not shorter than what it stands for is refused, charged and waited for', () => {
  const state = waiting(3);
  advance(state, [], MOMENT);
  const before = structuredClone(state.transcript);
  const long = summary({ text: 'x'.repeat(5_000) });
  expect(advance(state, [answered(state, long)], MOMENT).commands).toEqual([]);
  expect(state.wait).toMatchObject({
    reason: 'context_window',
    message: expect.stringMatching(/would not get smaller/),
  });
  expect(state.budget.spent.inputTokens).toBe(700);
  expect(state.transcript.slice(0, before.length)).toEqual(before);
  expect(state.summarized).toBeUndefined();
});

test('a compaction whose worker is lost is charged and done again', () => {
  const state = waiting(3);
  advance(state, [], MOMENT);
  const reserved = { ...state.budget.reserved };
  const lost: ModelResult = { kind: 'failed', failure: 'worker_lost', message: 'lost', maybeBilled: 1 };
  const { commands } = advance(state, [answered(state, lost)], MOMENT);
  expect(modelOf(commands).input.compact).toBeDefined();
  expect(state.budget.spent).toMatchObject({ lostReplies: 1, inputTokens: reserved.tokens });
});

test('a model that gives no summary is asked three times, without tools from the second on', () => {
  const state = waiting(3);
  advance(state, [], MOMENT);
  const empty: ModelResult = { kind: 'failed', failure: 'invalid_response', message: 'none', maybeBilled: 1 };
  expect(modelOf(advance(state, [answered(state, empty)], MOMENT).commands).input.compact).toMatchObject({
    again: true,
  });
  advance(state, [answered(state, empty)], MOMENT);
  expect(advance(state, [answered(state, empty)], MOMENT).commands).toEqual([]);
  expect(state.wait?.reason).toBe('invalid_response');
});

test('a cap that has no room for a compaction is a wait on the budget', () => {
  const state = waiting(3);
  state.budget.limits.tokens = 100;
  expect(advance(state, [], MOMENT).commands).toEqual([]);
  expect(state.wait?.reason).toBe('budget');
});

test('the plan and verbatim words are in the summary', () => {
  const state = waiting(3);
  state.plan = [{ id: 'a', title: 'Pay', postconditions: [], evidence: [], status: 'pending' }];
  advance(state, [], MOMENT);
  advance(state, [answered(state, summary({ verbatim: ['Never call me.'], open: 'What is left?' }))], MOMENT);
  const texts = state.transcript.at(-1)?.blocks.map((block) => (block.kind === 'text' ? block.text : ''));
  expect(texts?.[0]).toContain('"title":"Pay"');
  expect(texts?.slice(1)).toEqual([
    expect.stringMatching(/word for word\]\nNever call me\.$/),
    expect.stringMatching(/^\[Not answered yet.*\]\nWhat is left\?$/),
  ]);
});

test('reads run without a reply when their results might not fit', () => {
  const state = waiting(2);
  state.manifest = {
    ...manifestOf({ name: '', tools: { look: { effect: 'read' } }, replies: [], may: {} }),
    contextWindow: { compactAt: 2_000, keep: 100 },
  };
  advance(state, [], MOMENT);
  const asks: ModelResult = {
    kind: 'reply',
    blocks: [],
    calls: [{ name: 'look', args: {} }],
    usage: { inputTokens: 1_900, outputTokens: 50 },
  };
  expect(advance(state, [answered(state, asks)], MOMENT).commands.map(({ kind }) => kind)).toEqual(['reads']);
  const roomy = waiting(2);
  roomy.manifest = { ...state.manifest, contextWindow: { compactAt: 5_000, keep: 100 } };
  advance(roomy, [], MOMENT);
  const { commands } = advance(roomy, [answered(roomy, asks)], MOMENT);
  expect(modelOf(commands).input.first?.resultBytes).toBeLessThan(10_000);
});

test('an edit that takes a summary away brings back what it stood for', () => {
  const state = waiting(3);
  const { promptBytes } = state;
  state.inbox = [];
  const compacted = waiting(3);
  advance(compacted, [], MOMENT);
  advance(compacted, [answered(compacted, summary())], MOMENT);
  compacted.inFlight = [];
  const message = (id: string): Message => said(id, 'assistant', 10);
  const edit = { from: 4, messages: [message('changed'), compacted.transcript.at(-1) as Message] };
  const { refusals } = advance(compacted, [{ type: 'edit', value: { transcript: edit } }], MOMENT);
  expect(refusals).toEqual([null]);
  expect(compacted.summarized).toBeUndefined();
  expect(compacted.transcript.map(({ id }) => id)).toEqual([
    'user1',
    'answer1',
    'user2',
    'answer2',
    'changed',
  ]);
  expect(compacted.promptBytes).toBe(bytesOf(compacted.transcript));
  expect(compacted.promptBytes).toBeLessThan(promptBytes);
});

test('an edit after a summary leaves it in place', () => {
  const state = waiting(3);
  advance(state, [], MOMENT);
  advance(state, [answered(state, summary())], MOMENT);
  state.inFlight = [];
  const from = state.transcript.length;
  const edit = { from, messages: [said('added', 'assistant', 10)] };
  advance(state, [{ type: 'edit', value: { transcript: edit } }], MOMENT);
  expect(state.summarized).toBe(4);
  expect(
    viewOf(state.transcript)
      .map(({ id }) => id)
      .slice(1),
  ).toEqual(['user3', 'answer3', 'msg_0', 'added']);
});

const call: Message = {
  ...said('call', 'assistant'),
  blocks: [{ kind: 'tool_call', id: 'c', name: 'pay', args: {} }],
};
const result: Message = {
  ...said('result', 'tool'),
  blocks: [{ kind: 'tool_result', call_id: 'c', name: 'pay', content: 'paid'.repeat(100), is_error: false }],
};

test('a view is never cut between a call and its result', () => {
  const view = [said('a', 'user'), call, result, call, result];
  for (const keep of [0, 1, 500, 700, 1_000, 5_000]) {
    const cut = cutOf(view, keep);
    expect(view[cut ?? 0]?.role).not.toBe('tool');
  }
  expect(cutOf(view, 0)).toBe(3);
  expect(cutOf([said('a', 'user')], 0)).toBeNull();
  expect(cutOf([call, result], 0)).toBeNull();
});

test('what stays begins with a message of the user if one is near', () => {
  const view = [said('a', 'user'), said('b', 'assistant'), said('c', 'user'), said('d', 'assistant')];
  expect(cutOf(view, 2_500)).toBe(2);
  expect(cutOf(view, 1_500)).toBe(3);
  expect(cutOf(view, 3_500)).toBe(2);
});

test('a view begins with the last summary, and has no other', () => {
  const of = (before: number): Message => ({
    ...said(`s${before}`, 'user'),
    summary: { from: 0, before, bytes: 0 },
  });
  const all = [
    said('a', 'user'),
    said('b', 'assistant'),
    of(1),
    said('c', 'user'),
    said('d', 'assistant'),
    of(4),
  ];
  expect(viewOf(all.slice(0, 2))).toEqual(all.slice(0, 2));
  expect(viewOf(all.slice(0, 4)).map(({ id }) => id)).toEqual(['s1', 'b', 'c']);
  expect(viewOf(all).map(({ id }) => id)).toEqual(['s4', 'd']);
  expect(viewOf(all.slice(3), 3).map(({ id }) => id)).toEqual(['s4', 'd']);
  // A further summary needs something new to stand for.
  expect(cutOf(viewOf(all), 0)).toBeNull();
});

test('the session counts pinned messages, and lets nobody pin more than fits beside the rest', () => {
  const state = waiting(0);
  const send = (id: string, length: number): Input => ({
    type: 'send',
    value: { id, text: 'x'.repeat(length), pin: true },
  });
  advance(state, [send('rule', 800)], MOMENT);
  expect(state.transcript.at(-1)).toMatchObject({ id: 'rule', pinned: true });
  const { pinnedBytes = 0 } = state;
  expect(pinnedBytes).toBeGreaterThan(800);
  // Half of 3,000 bytes. What is queued counts, and a repeated message does not count twice.
  const more = { text: 'x'.repeat(400), pin: true };
  expect(pinProblem(state, more)).toBeNull();
  advance(state, [send('queued', 400)], MOMENT);
  expect(pinProblem(state, more)).toMatchObject({
    code: 'TOO_LARGE',
    details: { field: 'pin', limit: 1_500 },
  });
  expect(pinProblem(state, { ...more, id: 'queued' })).toBeNull();
  expect(pinProblem(state, { ...more, pin: false })).toBeNull();

  const [first, pinned] = state.transcript as [Message, Message];
  const { pinned: _pinned, ...ordinary } = pinned;
  applyEdit(state, { transcript: { from: 1, messages: [ordinary] } }, MOMENT);
  expect(state.pinnedBytes).toBe(0);
  applyEdit(state, { transcript: { from: 0, messages: [first, pinned] } }, MOMENT);
  expect(state.pinnedBytes).toBe(pinnedBytes);
});
