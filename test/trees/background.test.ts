import { expect, test } from 'vitest';
import { agentTool, type Session } from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { agent, ask, hold, once, scripted } from '../support/tree.ts';

/** Delegates once, and then says what it hears. */
const echo: Script = ({ assistantCount, lastUserText }) =>
  assistantCount === 0
    ? { toolCalls: [{ name: 'research', args: { task: 'Whales.' } }] }
    : { text: `heard: ${lastUserText}` };

/** Starts a lead whose researcher works in the background until somebody approves its call. */
async function startHolding(
  lead: Script = echo,
  { options = {}, more = {}, start = {} }: { options?: object; more?: object; start?: object } = {},
): Promise<{ stage: Stage; session: Session; child: Session }> {
  const stage = await openStage(
    scripted({ lead, researcher: once([{ name: 'hold', args: {} }], 'Found whales.') }),
  );
  const research = agentTool(agent(stage, 'researcher', { hold }), { background: true, ...options });
  await stage.startWorker([agent(stage, 'lead', { research }, more)]);
  const session = await ask(stage, start);
  await expect.poll(async () => (await session.snapshot()).children?.length, { timeout: 10_000 }).toBe(1);
  const { children = [] } = await session.snapshot();
  const child = stage.sessions.get(children[0]?.sessionId ?? '');
  await untilPhase(child, 'approval');
  return { stage, session, child };
}

async function approve(session: Session): Promise<void> {
  for (const call of (await session.state()).pending)
    await session.decide(call, { decision: 'approve' }, { by: 'ann' });
}

async function reports(session: Session): Promise<string[]> {
  const { transcript } = await session.snapshot();
  return transcript.flatMap(({ report }) => (report === undefined ? [] : [report.status]));
}

test('an agent in the background lets its caller go on, and its end wakes the caller once', async () => {
  const { stage, session, child } = await startHolding();
  await untilPhase(session, 'idle');
  const before = await session.snapshot();
  expect(before.calls[0]).toMatchObject({
    status: { kind: 'completed' },
    result: { content: { session: child.id, agent: 'researcher', status: 'running' } },
  });
  expect(before.transcript.at(-1)?.role).toBe('assistant');

  await approve(child);
  await expect.poll(() => reports(session), { timeout: 10_000 }).toEqual(['completed']);
  await untilPhase(session, 'idle');
  const state = await expectFoldEqualsLive(stage.client, session);
  const [told, said] = state.transcript.slice(-2);
  const { id } = state.calls[0] ?? { id: '' };
  expect(told?.report).toEqual({
    agent: 'researcher',
    session_id: child.id,
    call_id: id,
    status: 'completed',
  });
  expect(JSON.stringify(said?.blocks)).toContain('It has completed. Its answer:\\n\\nFound whales.');
  expect(state.messagesTaken).toBe(1);
  expect(state.inFlight).toEqual([]);
});
