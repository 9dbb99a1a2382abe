/** The judge of trees, on one as it should be and on what can be wrong with it. */
import { expect, test } from 'vitest';
import type { ObservedSession } from '../../faults/observe.ts';
import { REPLY_NANO_USD, type Step, type Story, type Task, taskBelow } from '../../faults/story.ts';
import { treeProblems } from '../../faults/trees.ts';
import type { SessionState } from '../../src/index.ts';

const root: Task = { session: 's', kind: 'mutate', tag: 's', turns: 1, mode: 'plain', below: 1 };
const leaf = taskBelow(root, 1);
const USED = {
  turns: 2,
  toolCalls: 1,
  inputTokens: 0,
  outputTokens: 0,
  nanoUsd: REPLY_NANO_USD,
  activeMs: 0,
};
const call = {
  id: 'call_1_0',
  args: { tag: 's#1' },
  status: { kind: 'completed' },
  result: { content: 'Done after 1.', isError: false },
};

function session(task: Task, state: object): ObservedSession {
  const spent = { ...USED, nanoUsd: REPLY_NANO_USD };
  return {
    task,
    state: {
      sessionId: task.session,
      status: { kind: 'completed' },
      calls: [],
      transcript: [],
      budget: { spent },
      ...state,
    } as unknown as SessionState,
  } as ObservedSession;
}

const child = session(leaf, {
  transcript: [{ role: 'assistant', blocks: [{ kind: 'text', text: 'Done after 1.' }] }],
});

const story = (step: Step = 'child-done'): Story => ({ step }) as Story;

function problems(state: object, below: ObservedSession[] = [child]): string[] {
  const above = session(root, { calls: [call], children: [{ end: { usage: USED } }], ...state });
  return treeProblems({ sessions: [above, ...below], story: story() }, above).map(([breach]) => breach);
}

test('a sub-agent that has worked once and told it once is all right', () => {
  expect(problems({})).toEqual([]);
  expect(treeProblems({ sessions: [child], story: story() }, child)).toEqual([]);
});

test('a task that is delegated twice, or never arrives, is a breach', () => {
  expect(problems({ calls: [call, call] })).toEqual(['duplicate']);
  expect(problems({ children: [] }, [])).toEqual(['stuck', 'loss']);
  expect(
    problems({ children: [{ end: { usage: USED } }, { end: { usage: USED } }] }, [child, child]),
  ).toEqual(['duplicate']);
});

test('an answer that is another than the sub-agent gave, or that was given up, is a breach', () => {
  expect(problems({ calls: [{ ...call, result: { content: 'Else.' } }] })).toEqual(['loss']);
  expect(problems({ calls: [{ ...call, status: { kind: 'failed' } }] })).toEqual(['not-done']);
});

test('what a tree has used is what its sessions have used', () => {
  expect(problems({ children: [] })).toEqual(['budget']);
});

const started = { ...call, result: { content: { session: 's/1', agent: 'careful', status: 'running' } } };
const report = {
  role: 'user',
  blocks: [{ kind: 'text', text: 'Its answer: Done after 1.' }],
  report: { agent: 'careful', session_id: 's/1', call_id: call.id, status: 'completed' },
};

function inBackground(
  state: object,
  { step, below = child }: { step?: Step; below?: ObservedSession } = {},
): string[] {
  const task: Task = { ...root, background: 1 };
  const children = [{ end: { usage: USED } }];
  const above = session(task, { calls: [started], transcript: [report], children, ...state });
  return treeProblems({ sessions: [above, below], story: story(step) }, above).map(([breach]) => breach);
}

test('a sub-agent in the background is told of once, by a message or in the result of its call', () => {
  const ended = {
    ...started,
    result: { content: { ...started.result.content, status: 'completed', answer: 'Done after 1.' } },
  };
  expect(inBackground({})).toEqual([]);
  expect(inBackground({ calls: [ended], transcript: [] })).toEqual([]);
  expect(inBackground({ transcript: [] })).toEqual(['message-lost']);
  expect(inBackground({ transcript: [report, report] })).toEqual(['message-twice']);
  expect(inBackground({ calls: [ended] })).toEqual(['message-twice']);
});

test('a report that is not what the sub-agent has come to is a breach', () => {
  const other = (change: object): object => ({
    transcript: [{ ...report, report: { ...report.report, ...change } }],
  });
  expect(inBackground(other({ status: 'failed' }))).toEqual(['loss']);
  expect(inBackground(other({ session_id: 's/2' }))).toEqual(['loss']);
  expect(inBackground({ transcript: [{ ...report, blocks: [] }] })).toEqual(['loss']);
  const active = session(leaf, { ...child.state, status: { kind: 'active' } });
  expect(inBackground({}, { below: active })).toEqual(['stuck', 'loss']);
});

test('a sub-agent whose caller has ended is cancelled and not told of', () => {
  const cancelled = session(leaf, { ...child.state, status: { kind: 'cancelled' } });
  const step = 'caller-ended';
  expect(inBackground({ transcript: [] }, { step, below: cancelled })).toEqual([]);
  expect(inBackground({ transcript: [] }, { step })).toEqual(['not-done']);
  expect(inBackground({}, { step, below: cancelled })).toEqual(['message-twice']);
});
