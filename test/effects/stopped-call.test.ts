/** People stop a session while a mutation is under way: it is settled, never lost. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session, type ToolCall } from '../../src/index.ts';
import { foldOf } from '../support/fold.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, untilPhase } from '../support/stage.ts';
import { calls, openWorld, type World } from '../support/world.ts';

const script = [calls('refund'), { text: 'Refunded.' }];

/** A session whose refund has happened, and whose reply has not come. */
async function midway(): Promise<{ world: World; session: Session }> {
  const world = await openWorld(script, { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  await world.startWorker();
  const session = await world.begin();
  await world.control.held();
  return { world, session };
}

async function theCall(world: World, session: Session): Promise<ToolCall | undefined> {
  const { calls: log } = await world.check(session);
  expect(await world.control.refunds()).toHaveLength(1);
  return log[0];
}

test('paused at once: the call is cancelled, found to have landed, and the turn goes on with its result', async () => {
  const { world, session } = await midway();
  await session.pause({ now: true, by: 'ada' });
  const call = await world.untilCall(session, 'call_1_0', 'completed');
  expect(call.dispatches).toMatchObject([
    { outcome: 'landed', reason: expect.stringContaining('cancelled in flight') },
  ]);
  expect(await session.state()).toMatchObject({ phase: 'paused', turn: 1 });
  await session.resume({ by: 'ada' });
  await world.until(session, 'idle');
  expect(await theCall(world, session)).toMatchObject({ result: { isError: false } });
});

test('paused at once before the effect: found absent, and run when somebody resumes', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const worker = await world.startWorkerProcess({ breakAt: ['request'] });
  const session = await world.begin();
  await worker.reached('request');
  await session.pause({ now: true });
  await world.untilCall(session, 'call_1_0', 'ready');
  expect(await session.state()).toMatchObject({ phase: 'paused' });
  expect(await world.control.refunds()).toEqual([]);
  // The tool that was left behind goes on: its signal has fired, so its request is never sent.
  worker.release('request');
  await session.resume();
  await worker.reached('request');
  worker.release('request');
  await world.until(session, 'idle');
  expect((await theCall(world, session))?.dispatches.map(({ outcome }) => outcome)).toEqual([
    'absent',
    'returned',
  ]);
});

test('cancelled: the session ends when the call is done, and knows its result', async () => {
  const { world, session } = await midway();
  await session.cancel({ by: 'ada', reason: 'enough' });
  await world.until(session, 'cancelling');
  await world.control.release();
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect(await theCall(world, session)).toMatchObject({
    status: { kind: 'completed' },
    dispatches: [{ outcome: 'returned' }],
  });
});

test('cancelled, and then the worker dies: the successor verifies before the session ends', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  const first = await world.startWorkerProcess();
  const session = await world.begin();
  await world.control.held();
  await session.cancel({ by: 'ada' });
  await first.crash();
  await world.startWorker();
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect(await theCall(world, session)).toMatchObject({
    status: { kind: 'completed' },
    dispatches: [{ outcome: 'landed' }],
  });
});

test('cancelled from a plain Temporal client: the same, and Temporal shows it as cancelled', async () => {
  const { world, session } = await midway();
  const handle = world.client.workflow.getHandle(session.id);
  await handle.cancel();
  await world.until(session, 'cancelling');
  await world.control.release();
  await rejection(handle.result());
  expect((await handle.describe()).status.name).toBe('CANCELLED');
  expect(await theCall(world, session)).toMatchObject({ status: { kind: 'completed' } });
  expect(await session.state()).toMatchObject({ status: { kind: 'cancelled', by: 'temporal' } });
});

test('terminated from outside: the history folds, with the call on record as given out', async () => {
  const { world, session } = await midway();
  const handle = world.client.workflow.getHandle(session.id);
  await handle.terminate('somebody had to');
  await world.control.release();
  const folded = await foldOf(world.client, session);
  expect(folded.calls).toMatchObject([{ status: { kind: 'running' }, dispatches: [{ outcome: null }] }]);
  expect(await world.check(session)).toEqual(folded);
  expect(await world.control.refunds()).toMatchObject([{ key: folded.calls[0]?.idempotencyKey }]);
});

test('terminated with a result that it has not seen: it reads as its history folds, and as terminated', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const worker = await world.startWorkerProcess({ breakAt: ['before verify refund'] });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'drop-connection' });
  const session = await world.begin();
  await worker.reached('before verify refund');
  await worker.crash();
  // With no worker, a signal is an event that no workflow task has taken up.
  await session.pause();
  await world.client.workflow.getHandle(session.id).terminate();
  const folded = await foldOf(world.client, session);
  expect(folded).toMatchObject({ paused: null, calls: [{ status: { kind: 'verifying' } }] });
  await world.startWorker();
  expect(await session.read()).toMatchObject({ state: folded, source: 'history', run: 'terminated' });
  expect(await rejection(session.send('Go on.'))).toMatchObject({ code: 'SESSION_CLOSED' });
});

test('its own time-out stops a call at its next fence, though it was known as its own a moment ago', async () => {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0 ? { toolCalls: [{ name: 'pay', args: {} }] } : { text: 'Done.' },
  );
  const fenced: Promise<unknown>[] = [];
  const paid: number[] = [];
  const pay = defineTool({
    inputSchema: z.object({}),
    settle: 0,
    timeout: '1s',
    execute: async (_, { attempt, fence, abortSignal }) => {
      if (attempt === 1) {
        const passed = (async () => {
          // As long as it may, it asks again and again: the last answer is of just before the end.
          while (!abortSignal.aborted) await fence();
          await fence();
        })();
        fenced.push(rejection(passed));
        await passed;
      }
      paid.push(attempt);
      return 'paid';
    },
    verify: () => (paid.length > 0 ? { outcome: 'landed', output: 'paid' } : { outcome: 'absent' }),
  });
  await stage.startWorker([
    defineAgent({ name: 'payer', model: stage.provider('m'), instructions: 'Pay.', tools: { pay } }),
  ]);
  const session = await stage.sessions.start('payer', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'idle');
  expect(await Promise.all(fenced)).toMatchObject([{ code: 'FENCED' }]);
  expect(paid).toEqual([2]);
});
