/** Stories of several workflows: a tree of sessions, and sessions that share a pool of money and a rate limit. */

import { poolWorkflowId, rateLimiterId } from '../../src/contract/workflow-ids.ts';
import { agentTool } from '../../src/index.ts';
import { polled } from '../support/polled.ts';
import { type Stage, until, untilPhase } from '../support/stage.ts';
import { agent, hold, once, scripted } from '../support/tree.ts';
import type { Story } from './stories.ts';

/** A reply costs 2 dollars. */
const usage = { inputTokens: 10, outputTokens: 200 };
const priced = (stage: Stage, name: string): object => ({
  model: { model: stage.provider(name), price: { inputPerMillion: 0, outputPerMillion: 10_000 } },
  maxOutputTokens: 200,
});

/**
 * Two sub-agents under one cap, paused and resumed from their root. One is approved at the root and answers, the other waits
 * for money, and is cancelled with the root.
 */
export const tree: Story = {
  script: scripted({
    story: async (request) => ({
      ...(await once([
        { name: 'research', args: { task: 'Whales.' } },
        { name: 'research', args: { task: 'Sharks.' } },
      ])(request)),
      usage,
    }),
    researcher: async (request) => ({ ...(await once([{ name: 'hold', args: {} }])(request)), usage }),
  }),
  agent: (stage) => {
    const researcher = agent(stage, 'researcher', { hold }, priced(stage, 'researcher'));
    return agent(stage, 'story', { research: agentTool(researcher) }, priced(stage, 'story'));
  },
  message: 'Report.',
  start: { budget: { usd: 7 } },
  act: async (session, { sessions }) => {
    const shown = async (count: number) => {
      await polled(
        async () => (await session.tree()).open.length === count,
        () => `not ${count} sub-agents ask`,
      );
      return (await session.tree()).open;
    };
    const [first] = await shown(2);
    if (first === undefined) throw new Error('nobody asks');
    await session.pause({ by: 'ada', reason: 'lunch' });
    const leaf = sessions.get(first.sessionId);
    await untilPhase(leaf, 'paused');
    await session.resume({ by: 'ada' });
    await untilPhase(leaf, 'approval');
    for (const call of await leaf.approvals())
      await session.decide({ ...call, sessionId: leaf.id }, { decision: 'approve' }, { by: 'ada' });
    await untilPhase(leaf, 'waiting');
    await session.setBudget({ limits: { usd: 9 }, by: 'ada' });
    await leaf.result();
    await polled(
      async () => (await session.calls()).items.some(({ status }) => status.kind === 'completed'),
      () => 'the root has no answer',
    );
    await session.cancel({ by: 'ada', reason: 'enough' });
    await session.result();
  },
  also: async (session) => {
    const { children = [] } = await session.snapshot();
    const [first, second] = children;
    return {
      'tree-answer': first?.sessionId ?? '',
      'tree-cancelled': second?.sessionId ?? '',
      'tree-pool': poolWorkflowId(`tree/${session.id}`),
    };
  },
};

/**
 * Two sub-agents in the background. The session looks at both, and is told of the end of each: one answers, and the model
 * stops the other in a new run, which their calls have left.
 */
export const background: Story = {
  script: scripted({
    story: ({ assistantCount, lastUserText, toolResults }) => {
      if (assistantCount === 0)
        return { toolCalls: ['Whales.', 'Sharks.'].map((task) => ({ name: 'research', args: { task } })) };
      if (lastUserText !== 'Stop.' || toolResults.length > 2) return { text: `heard ${lastUserText}` };
      const { session } = JSON.parse(toolResults[0]?.text ?? '') as { session: string };
      return { toolCalls: [{ name: 'agent_stop', args: { session } }] };
    },
    researcher: once([{ name: 'hold', args: {} }]),
  }),
  agent: (stage) => {
    const research = agentTool(agent(stage, 'researcher', { hold }), { background: true });
    return agent(stage, 'story', { research }, { runTurns: 4 });
  },
  message: 'Report.',
  act: async (session, { sessions }) => {
    await untilPhase(session, 'idle');
    const { children = [] } = await session.snapshot();
    const [whales, sharks] = children.map(({ sessionId }) => sessions.get(sessionId));
    if (whales === undefined || sharks === undefined) throw new Error('nobody works');
    for (const leaf of [whales, sharks]) await untilPhase(leaf, 'approval');
    await session.send('One.');
    await until(session, ({ lastText }) => lastText === 'heard One.');
    await session.pause({ by: 'ada' });
    await untilPhase(sharks, 'paused');
    await session.resume({ by: 'ada' });
    await untilPhase(sharks, 'approval');
    for (const call of await sharks.approvals()) await sharks.decide(call, { decision: 'approve' });
    await until(session, ({ lastText }) => lastText.includes('It has completed'));
    await session.send('Stop.');
    await until(session, ({ lastText }) => lastText.includes('It ended without an answer'));
    await untilPhase(session, 'idle');
  },
  run: 0,
  also: (session) => Promise.resolve({ 'background-later': session.id }),
};

/** A session that waits for its turn under a rate limit, and for a pool with a cap for each day that a person raises. */
export const shared: Story = {
  script: ({ lastUserText }) => ({ text: `heard ${lastUserText}`, usage }),
  agent: (stage) => agent(stage, 'story', {}, priced(stage, 'm')),
  message: 'one',
  start: { pool: 'story' },
  worker: { rateLimits: { scripted: { requestsPerMinute: 20, window: '3s' } } },
  act: async (session, { sessions }) => {
    const pool = sessions.pool('story');
    await untilPhase(session, 'waiting');
    await pool.set({ usd: 4, by: 'ada' });
    await pool.set({ usd: 4, period: 'day', zone: 'Europe/Berlin', by: 'ada' });
    await session.resume({ by: 'ada' });
    await untilPhase(session, 'idle');
    await session.send({ text: 'two', id: 'm2' });
    await until(session, ({ limited }) => limited !== undefined);
    await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
    await session.send({ text: 'three', id: 'm3' });
    await untilPhase(session, 'waiting');
    await pool.set({ usd: 6, by: 'ada' });
    await until(session, ({ turn, phase }) => turn === 3 && phase === 'idle');
    await session.cancel({ by: 'ada', reason: 'done' });
    await session.result();
  },
  also: async (_, { taskQueue }) => ({
    'shared-pool': poolWorkflowId('story'),
    'shared-limiter': rateLimiterId(taskQueue, 'scripted'),
  }),
};

const said = (tokens: number, remaining: number): Record<string, string> => ({
  'x-ratelimit-limit-tokens': String(tokens),
  'x-ratelimit-remaining-tokens': String(remaining),
  'x-ratelimit-reset-tokens': '2s',
});

/** A limit that is learned from the headers of answers, holds a session back, and gets lower after a refusal. */
export const learned: Story = {
  script: ({ lastUserText, repeat }) =>
    lastUserText === 'three' && repeat === 0
      ? { fault: 'status', status: 429, headers: { 'retry-after-ms': '500', ...said(400, 0) } }
      : { text: `heard ${lastUserText}`, usage, headers: said(500, lastUserText === 'one' ? 100 : 400) },
  agent: (stage) => agent(stage, 'story', {}, priced(stage, 'm')),
  message: 'one',
  worker: { rateLimits: { scripted: { fromHeaders: true, window: '3s' } } },
  act: async (session) => {
    await untilPhase(session, 'idle');
    await session.send({ text: 'two', id: 'm2' });
    await until(session, ({ limited }) => limited !== undefined);
    await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
    await session.send({ text: 'three', id: 'm3' });
    await until(session, ({ turn, phase }) => turn === 3 && phase === 'idle');
    await session.cancel({ by: 'ada', reason: 'done' });
    await session.result();
  },
  also: async (_, { taskQueue }) => ({ 'learned-limiter': rateLimiterId(taskQueue, 'scripted') }),
};

/** A session without a price, which a pool with a cap on dollars told again and again to ask. */
export const unpriced: Story = {
  script: ({ lastUserText }) => ({ text: `heard ${lastUserText}` }),
  agent: (stage) => agent(stage, 'story'),
  message: 'Hello.',
  start: { pool: 'unpriced' },
  act: async (session, { sessions }) => {
    await untilPhase(session, 'waiting');
    const pool = sessions.pool('unpriced');
    await pool.set({ usd: 4, tokens: 100_000 });
    await session.resume();
    await until(session, ({ wait }) => wait?.message.includes('has no price') === true);
    await pool.set({ usd: null });
    await until(session, ({ phase }) => phase === 'idle');
    await session.send({ text: 'And?', id: 'and' });
    await until(session, ({ phase, lastText }) => phase === 'idle' && lastText === 'heard And?');
  },
  also: async () => ({ 'unpriced-pool': poolWorkflowId('unpriced') }),
};
