/** What a session records of a changed definition of its agent. */
import { expect, test } from 'vitest';
import type { Manifest, SessionState, ToolManifest } from '../../src/index.ts';
import { changeInWords } from '../../src/session/agent-change.ts';
import { initialState } from '../../src/session/initial.ts';
import { setManifest } from '../../src/session/manifest.ts';
import { sessionView } from '../../src/session/views.ts';
import { MOMENT, manifestOf } from './checker/scenario.ts';

const TOOL: ToolManifest = {
  name: 'pay',
  description: 'Pays.',
  inputSchema: { type: 'object' },
  effect: 'mutate',
  scope: 'message',
  ttlMs: 0,
  verify: false,
  timeoutMs: 1_000,
  settleMs: 1_000,
  maxAttempts: 3,
  approval: { expiresMs: null, onExpiry: 'reject' },
};

function withTools(digest: string, ...tools: ToolManifest[]): Manifest {
  const named = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
  return { ...manifestOf({ name: '', tools: {}, replies: [], may: {} }), digest, tools: named };
}

function session(...manifests: Manifest[]): SessionState {
  const state = initialState({ sessionId: 's', runId: 'r', firstRunId: 'r' }, { agent: 'clerk' }, MOMENT);
  for (const manifest of manifests) setManifest(state, manifest, MOMENT);
  return state;
}

test('a session says which fields of its agent and of each tool have changed, and which tools came and went', () => {
  const before = withTools('one', TOOL, { ...TOOL, name: 'look' });
  const after: Manifest = {
    ...withTools('two', { ...TOOL, verify: true, inputSchema: { type: 'object', required: ['id'] } }),
    instructions: 'Be kind.',
    budget: { usd: 3 },
    runTurns: 50,
  };
  after.tools['refund'] = { ...TOOL, name: 'refund' };
  const { agentChanges } = sessionView(session(before, after));
  expect(agentChanges).toEqual([
    {
      at: new Date(MOMENT.now).toISOString(),
      turn: 0,
      from: 'one',
      to: 'two',
      changed: ['instructions', 'runTurns', 'budget.usd', 'tools.pay.inputSchema', 'tools.pay.verify'],
      addedTools: ['refund'],
      removedTools: ['look'],
    },
  ]);
});

test('the first definition of a session is no change', () => {
  expect(sessionView(session(withTools('one', TOOL))).agentChanges).toEqual([]);
});

test('the record of changes stays small: the last ten changes, and forty names of each', () => {
  const many = Array.from({ length: 120 }, (_, i) => ({ ...TOOL, name: `tool_${i}` }));
  const manifests = Array.from({ length: 25 }, (_, i) => withTools(`d${i}`, ...(i % 2 === 0 ? many : [])));
  const { agentChanges } = sessionView(session(...manifests));
  expect(agentChanges.map(({ to }) => to)).toEqual(Array.from({ length: 10 }, (_, i) => `d${i + 15}`));
  expect(agentChanges[0]).toMatchObject({ changed: [], addedTools: [], more: 80 });
  expect(agentChanges[0]?.removedTools).toHaveLength(40);
  expect(changeInWords(agentChanges[0] as (typeof agentChanges)[0])).toContain('80 more');
});
