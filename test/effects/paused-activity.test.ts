/** An operator pauses the activity of a mutation in Temporal itself, which the session knows nothing of. */
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool } from '../../src/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, untilPhase } from '../support/stage.ts';
import { calls, openWorld } from '../support/world.ts';

test('the fence stops a call whose activity is paused: it is found absent, and made again', async () => {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0 ? { toolCalls: [{ name: 'pay', args: {} }] } : { text: 'Done.' },
  );
  const paid: number[] = [];
  const fenced: unknown[] = [];
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let reached = (): void => {};
  const atWork = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const pay = defineTool({
    inputSchema: z.object({}),
    settle: 0,
    timeout: '20s',
    execute: async (_, { attempt, fence, abortSignal }) => {
      reached();
      await held;
      // No heartbeat has told the worker: it is the fence that finds it out, once it asks again.
      while (attempt === 1) {
        expect(abortSignal.aborted).toBe(false);
        await fence().catch((error: unknown) => {
          fenced.push(error);
          throw error;
        });
        await nextTick();
      }
      paid.push(attempt);
      return 'paid';
    },
    verify: () => (paid.length > 0 ? { outcome: 'landed', output: 'paid' } : { outcome: 'absent' }),
  });
  await stage.startWorker([
    defineAgent({
      name: 'payer',
      model: stage.provider('m'),
      instructions: 'Pay.',
      tools: { pay },
      heartbeat: '2 minutes',
    }),
  ]);
  const session = await stage.sessions.start('payer', { id: stage.id(), message: 'go' });
  await atWork;
  const handle = stage.client.workflow.getHandle(session.id);
  const [pending] = (await handle.describe()).raw.pendingActivities ?? [];
  await stage.client.workflowService.pauseActivity({
    namespace: stage.client.options.namespace,
    execution: { workflowId: session.id },
    id: pending?.activityId ?? null,
    identity: 'an operator',
  });
  release();
  await untilPhase(session, 'idle', 'waiting', 'unknown_effect');
  const { items } = await session.calls();
  expect(fenced).toMatchObject([{ code: 'FENCED', message: 'The call must stop: the activity was paused.' }]);
  expect(paid).toEqual([2]);
  expect(items).toMatchObject([
    { status: { kind: 'completed' }, dispatches: [{ outcome: 'absent' }, { outcome: 'returned' }] },
  ]);
  await expectFoldEqualsLive(stage.client, session);
});

test('a lost call whose attempts an operator sets back is not made again, but looked for', async () => {
  const world = await openWorld([calls('refund'), { text: 'Refunded.' }], { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['after refund'] });
  const session = await world.begin();
  await first.reached('after refund');
  const handle = world.client.workflow.getHandle(session.id);
  const pending = async () => (await handle.describe()).raw.pendingActivities?.[0];
  const activity = {
    namespace: world.client.options.namespace,
    execution: { workflowId: session.id },
    id: (await pending())?.activityId ?? null,
    identity: 'an operator',
  };
  await world.client.workflowService.pauseActivity(activity);
  await first.crash();
  // The successor gives the call up for the dead worker; the server takes that for one attempt of many, and waits.
  await world.startWorker();
  await expect.poll(async () => (await pending())?.attempt).toBe(2);
  await world.client.workflowService.unpauseActivity({ ...activity, resetAttempts: true });
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]?.dispatches).toMatchObject([
    { outcome: 'landed', reason: expect.stringContaining('as another attempt') },
  ]);
  expect(await world.control.refunds()).toHaveLength(1);
});
