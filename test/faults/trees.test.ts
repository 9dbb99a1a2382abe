/** The judge of trees, on one as it should be and on what can be wrong with it. */
import { expect, test } from 'vitest';
import type { ObservedSession } from '../../faults/observe.ts';
import { REPLY_NANO_USD, type Task, taskBelow } from '../../faults/story.ts';
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
    state: { calls: [], budget: { spent }, ...state } as unknown as SessionState,
  } as ObservedSession;
}

const child = session(leaf, {
  transcript: [{ role: 'assistant', blocks: [{ type: 'text', text: 'Done after 1.' }] }],
});

function problems(state: object, below: ObservedSession[] = [child]): string[] {
  const above = session(root, { calls: [call], children: [{ end: { usage: USED } }], ...state });
  return treeProblems({ sessions: [above, ...below] }, above).map(([breach]) => breach);
}

test('a sub-agent that has worked once and told it once is all right', () => {
  expect(problems({})).toEqual([]);
  expect(treeProblems({ sessions: [child] }, child)).toEqual([]);
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
