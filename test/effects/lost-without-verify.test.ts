/** A worker dies during a mutation that nobody can verify: a person says what became of it. */
import { expect, test } from 'vitest';
import type { Session } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { calls, openWorld, PEN, type World } from '../support/world.ts';

const script = [calls('refundBlind'), { text: 'I see.' }];

/** A worker dies at a point of the refund, and its successor asks. */
async function lose(world: World, point: string): Promise<Session> {
  const first = await world.startWorkerProcess({ breakAt: [point] });
  const session = await world.begin();
  await first.reached(point);
  await first.crash();
  await world.startWorkerProcess();
  const view = await world.until(session, 'unknown_effect');
  expect(view.pending).toMatchObject([
    { callId: 'call_1_0', tool: 'refundBlind', args: PEN, status: { kind: 'unknown' } },
  ]);
  expect(view.pending[0]?.next).toBe(`perdure resolve ${session.id} call_1_0 landed|absent|failed`);
  return session;
}

test('it landed, says a person: their word is the result, and nothing is run again', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const session = await lose(world, 'after refundBlind');
  const [row] = await world.control.refunds();
  await session.resolve('call_1_0', { outcome: 'landed', output: { id: row?.id ?? null } }, { by: 'ada' });
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    result: { content: { id: row?.id }, isError: false },
    resolution: { outcome: 'landed', by: 'ada' },
    dispatches: [{ no: 1, outcome: 'landed' }],
  });
  expect(await world.control.refunds()).toHaveLength(1);
  // The second to answer is told that the call is settled.
  expect(await rejection(session.resolve('call_1_0', { outcome: 'absent' }))).toMatchObject({
    code: 'CALL_NOT_PENDING',
  });
});

test('it did not happen, says a person: it is dispatched again with the same key', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const session = await lose(world, 'request');
  const [asked] = await session.approvals();
  await session.resolve('call_1_0', { outcome: 'absent' }, { by: 'ada' });
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    resolution: { outcome: 'absent', by: 'ada' },
    dispatches: [
      { no: 1, outcome: 'absent' },
      { no: 2, outcome: 'returned' },
    ],
  });
  expect(await world.control.refunds()).toMatchObject([{ key: asked?.idempotencyKey }]);
});

test('leave it, says a person: it is not run again, and the model is told that it failed', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const session = await lose(world, 'request');
  await session.resolve('call_1_0', { outcome: 'failed', reason: 'the bank is closed' }, { by: 'ada' });
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({ status: { kind: 'failed', certain: false }, result: { isError: true } });
  expect(world.model.requests.at(-1)?.request.toolResults).toMatchObject([
    { toolName: 'refundBlind', text: expect.stringContaining('the bank is closed') },
  ]);
  expect(await world.control.refunds()).toEqual([]);
});
