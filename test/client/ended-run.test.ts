import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

async function waiting(start: { workflowRunTimeout?: '3s' } = {}) {
  const stage = await openStage(scriptedTurns([{ toolCalls: [{ name: 'pay', args: {} }] }]));
  const pay = defineTool({
    description: 'Pay',
    inputSchema: z.object({}),
    effect: 'mutate',
    needsApproval: true,
    execute: () => null,
  });
  await stage.startWorker([
    defineAgent({ name: 'payer', model: stage.provider('m'), instructions: 'Pay.', tools: { pay } }),
  ]);
  const id = stage.id();
  await stage.client.workflow.start('agentSession', {
    workflowId: id,
    taskQueue: stage.taskQueue,
    args: [{ agent: 'payer', message: { text: 'pay' } }],
    ...start,
  });
  const session = stage.sessions.get(id);
  await untilPhase(session, 'approval');
  return { stage, session };
}

test('the view of a session that was terminated says so, with the reason, and nothing of it waits', async () => {
  const { stage, session } = await waiting();
  expect(await session.state()).toMatchObject({ status: { kind: 'active' }, phase: 'approval' });
  await stage.client.workflow.getHandle(session.id).terminate('by hand');
  const view = await session.state();
  expect(view).toMatchObject({
    status: { kind: 'ended', run: 'terminated', reason: 'by hand', at: expect.any(String) },
    phase: 'closed',
    pending: [],
  });
  expect(await session.approvals()).toEqual([]);
  expect(await session.read()).toMatchObject({ run: 'terminated', view });
});

test('the view of a session that Temporal has timed out says so', async () => {
  const { session } = await waiting({ workflowRunTimeout: '3s' });
  await expect
    .poll(async () => (await session.state()).status)
    .toMatchObject({ kind: 'ended', run: 'timed_out', reason: '' });
});
