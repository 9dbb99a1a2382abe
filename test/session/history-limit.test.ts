import { expect, test } from 'vitest';
import { LIMIT, type Manifest, type SessionState } from '../../src/index.ts';
import { type Advance, advance } from '../../src/session/advance.ts';
import type { Input, Moment } from '../../src/session/events.ts';
import { initialState } from '../../src/session/initial.ts';
import { phaseOf } from '../../src/session/state.ts';

const MANIFEST: Manifest = {
  schema: 1,
  agent: 'long',
  digest: 'd',
  instructions: 'Go on.',
  models: [{ id: 'm', maxOutputTokens: 10, price: null }],
  tools: {},
  budget: {},
  loopLimit: 3,
  toolOrder: 'ordered',
  plan: false,
  heartbeatMs: 1_000,
  modelCallMs: 900_000,
};

const small: Moment = { now: 1_000, historyEvents: 10, historyBytes: 1_000 };

/** A session that has its definition and a message, and is about to ask the model. */
function ready(): { state: SessionState; go: (inputs: Input[], moment: Moment) => Advance } {
  const state = initialState(
    { sessionId: 's', runId: 'r', firstRunId: 'r' },
    { agent: 'long', message: { text: 'hi' } },
    small,
  );
  advance(state, [], small);
  return { state, go: (inputs, moment) => advance(state, inputs, moment) };
}

const described: Input = {
  type: 'outcome',
  seq: 1,
  outcome: {
    kind: 'describe',
    result: { ok: true, value: { kind: 'manifest', manifest: MANIFEST, searchAttributes: [] } },
  },
};

test.each<[string, Moment]>([
  ['events', { ...small, historyEvents: LIMIT.historyEvents }],
  ['bytes', { ...small, historyBytes: LIMIT.historyBytes }],
])('a history near its limit of %s stops the session visibly before the next model call', (_, limit) => {
  const { state, go } = ready();
  const { commands } = go([described], limit);
  expect(commands).toEqual([]);
  expect(phaseOf(state)).toBe('waiting');
  expect(state.wait).toMatchObject({
    reason: 'history_limit',
    message: expect.stringContaining(`${limit.historyEvents} events and ${limit.historyBytes} bytes`),
  });
  expect(state.wait?.next).toEqual({ action: 'fork', sessionId: state.sessionId });
  // Nothing is lost: messages are still queued, and a resume only says it again.
  const before = { ...limit, now: 5_000 };
  expect(go([{ type: 'send', value: { text: 'more', id: 'm' } }], before).refusals).toEqual([null]);
  expect(state.inbox.map(({ id }) => id)).toEqual(['m']);
  expect(go([{ type: 'resume', value: {} }], before).commands).toEqual([]);
  expect(state.wait).toMatchObject({ reason: 'history_limit', since: new Date(5_000).toISOString() });
  // It can be ended in order.
  expect(go([{ type: 'cancel', value: { by: 'ada' } }], before).commands).toMatchObject([{ kind: 'close' }]);
  expect(state.status).toMatchObject({ kind: 'cancelled', by: 'ada' });
});

test('just under the limit the model is asked', () => {
  const { go } = ready();
  const moment = { now: 1_000, historyEvents: LIMIT.historyEvents - 1, historyBytes: LIMIT.historyBytes - 1 };
  expect(go([described], moment).commands).toMatchObject([{ kind: 'model' }]);
});

test('a batch that has begun is carried to its end over the limit', () => {
  const { state, go } = ready();
  const [model] = go([described], small).commands;
  const reply: Input = {
    type: 'outcome',
    seq: (model as { seq: number }).seq,
    outcome: {
      kind: 'model',
      result: {
        ok: true,
        value: {
          kind: 'reply',
          model: 0,
          blocks: [],
          calls: [{ name: 'gone', args: {}, problem: 'There is no tool gone.' }],
          usage: { inputTokens: 1, outputTokens: 1 },
        } as never,
      },
    },
  };
  const limit = { ...small, historyEvents: LIMIT.historyEvents };
  expect(go([reply], limit).commands).toEqual([]);
  expect(state.transcript.at(-1)).toMatchObject({
    role: 'tool',
    blocks: [{ content: 'There is no tool gone.' }],
  });
  expect(state.wait?.reason).toBe('history_limit');
});
