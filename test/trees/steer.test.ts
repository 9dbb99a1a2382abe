import { expect, test } from 'vitest';
import { agentTool, type Checkpoint, type Session, TemporalSaver } from '../../src/index.ts';
import { runCheckpoint, sessionCheckpoint } from '../../src/saver/records/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { agent, ask, hold, once, scripted } from '../support/tree.ts';

/** Three levels; at the bottom two agents wait for an approval. */
async function openTree(): Promise<{ stage: Stage; session: Session; leaves: Session[] }> {
  const stage = await openStage(
    scripted({
      lead: once([{ name: 'middle', args: { task: 'Go.' } }]),
      middle: once([
        { name: 'leaf', args: { task: 'One.' } },
        { name: 'leaf', args: { task: 'Two.' } },
      ]),
      leaf: once([{ name: 'hold', args: {} }]),
    }),
  );
  const middle = agent(stage, 'middle', { leaf: agentTool(agent(stage, 'leaf', { hold })) });
  await stage.startWorker([agent(stage, 'lead', { middle: agentTool(middle) })]);
  const session = await ask(stage);
  await expect.poll(async () => (await session.tree()).open.length, { interval: 50 }).toBe(2);
  const leaves = (await session.tree()).open.map(({ sessionId }) => stage.sessions.get(sessionId));
  return { stage, session, leaves };
}

test('approvals of a tree are one list at its root, where a decision reaches the right session once', async () => {
  const { stage, session, leaves } = await openTree();
  const { nodes, open } = await session.tree();
  expect(nodes.map(({ path, depth }) => [path.join(' > '), depth])).toEqual([
    ['lead', 0],
    ['lead > middle', 1],
    ['lead > middle > leaf', 2],
    ['lead > middle > leaf', 2],
  ]);
  const asked = async () =>
    (await stage.sessions.inbox({ agent: 'leaf', limit: 1_000 })).items.filter(
      ({ root }) => root === session.id,
    );
  await expect.poll(async () => (await asked()).length).toBe(2);
  expect((await asked())[0]?.path).toEqual(['lead', 'middle', 'leaf']);

  const [first, second] = open.map(({ call, sessionId }) => ({ ...call, sessionId }));
  const decided = {
    callId: first?.callId ?? '',
    argsDigest: first?.argsDigest ?? '',
    sessionId: first?.sessionId ?? '',
  };
  await session.decide(decided, { decision: 'approve' }, { by: 'ann' });
  await expect(session.decide(decided, { decision: 'approve' })).rejects.toMatchObject({
    code: expect.stringMatching(/CALL_NOT_PENDING|SESSION_CLOSED/),
  });
  await expect(session.decide({ ...decided, sessionId: 'other' }, { decision: 'approve' })).rejects.toThrow(
    'other is no sub-agent of',
  );
  await untilPhase(leaves[1] as Session, 'approval');
  await session.decide(
    {
      callId: second?.callId ?? '',
      argsDigest: second?.argsDigest ?? '',
      sessionId: second?.sessionId ?? '',
    },
    { decision: 'reject' },
  );
  const saver = new TemporalSaver(stage.client);
  const latest = async (): Promise<Checkpoint> =>
    (await saver.get(session.id)) ?? expect.fail('no checkpoint');
  expect(sessionCheckpoint(await latest()).activeAgents).toMatchObject([
    { agentId: 'lead', depth: 0 },
    {
      agentId: 'middle',
      parentAgentId: 'lead',
      depth: 1,
      conversationTail: [{ delegationTargets: ['middle'] }],
    },
  ]);
  const { turn } = await untilPhase(session, 'idle');
  expect(runCheckpoint(await latest()).payload).toMatchObject({
    subagent_executions: [{ agent: 'middle', tool_name: 'middle', status: 'completed', success: true }],
  });
  expect(turn).toBe(2);
  const usage = (await session.tree()).nodes.map((node) => node.usage?.turns);
  expect(usage).toEqual([8, 6]);
  await expectFoldEqualsLive(stage.client, session);
});

test('a pause goes down the tree, and so does resume', async () => {
  const { stage, session, leaves } = await openTree();
  await session.pause({ by: 'ann', reason: 'lunch' });
  for (const leaf of leaves) {
    const { paused } = await untilPhase(leaf, 'paused');
    expect(paused).toMatchObject({ by: 'ann', reason: 'lunch' });
  }
  for (const leaf of leaves)
    for (const call of await leaf.approvals()) await leaf.decide(call, { decision: 'approve' });
  await session.resume({ by: 'ann' });
  await untilPhase(session, 'idle');
  expect((await expectFoldEqualsLive(stage.client, session)).calls[0]?.status.kind).toBe('completed');
});

test('a cancellation goes down the tree, and the root ends when all below it have', async () => {
  const { session, leaves } = await openTree();
  await session.cancel({ by: 'ann', reason: 'enough' });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  for (const leaf of leaves) expect(await leaf.result()).toMatchObject({ status: 'cancelled' });
  expect((await session.calls()).items[0]?.result?.content).toBe('middle ended without an answer: enough');
});

test('a message that interrupts ends the sub-agents of the turn', async () => {
  const { stage, session, leaves } = await openTree();
  await session.send({ text: 'Never mind.', mode: 'interrupt' });
  await until(session, ({ phase, messages }) => phase === 'idle' && messages > 3);
  for (const leaf of leaves) expect(await leaf.result()).toMatchObject({ status: 'cancelled' });
  await expectFoldEqualsLive(stage.client, session);
});

test('a rewind of the root finds the sub-agent that works, and what it has answered', async () => {
  const { stage, session, leaves } = await openTree();
  const saver = new TemporalSaver(stage.client);
  const [first] = (await saver.list(session.id, { limit: 100 })).slice(-1);
  const back = async (): Promise<Session> =>
    stage.sessions.rewind(
      { sessionId: session.id, checkpointId: first?.id ?? '' },
      { by: 'ann', reason: 'again' },
    );
  const again = await back();
  const open = async (): Promise<string[]> => (await again.tree()).open.map(({ sessionId }) => sessionId);
  await expect.poll(open).toEqual(leaves.map(({ id }) => id));
  for (const leaf of leaves)
    for (const call of await leaf.approvals()) await leaf.decide(call, { decision: 'approve' });
  await untilPhase(again, 'idle');
  await untilPhase(await back(), 'idle');
  const state = await expectFoldEqualsLive(stage.client, session);
  expect(state.calls[0]?.status.kind).toBe('completed');
  const asked = stage.model.requests.filter(({ request }) => request.model === 'middle');
  expect(asked).toHaveLength(2);
});
