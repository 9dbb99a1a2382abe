/** A worker dies during a mutation that nobody can verify: a person says what became of it. */
import { expect, test } from 'vitest';
import type { Session } from '../../src/index.ts';
import { resolve } from '../support/decide.ts';
import { rejection } from '../support/rejection.ts';
import { calls, openWorld, PEN, type World } from '../support/world.ts';

const script = [calls('refundBlind'), { text: 'I see.' }];

/** A worker dies at a point of the refund, and its successor asks. */
async function lose(world: World, point: string): Promise<Session> {
  const first = await world.startWorkerProcess({ breakAt: [point] });
  const session = await world.begin();
  await first.reached(point);
  await first.crash();
  await world.startWorker();
  const view = await world.until(session, 'unknown_effect');
  expect(view.pending).toMatchObject([
    { callId: 'call_1_0', tool: 'refundBlind', args: PEN, status: { kind: 'unknown' } },
  ]);
  const { argsDigest } = view.pending[0] ?? {};
  const seen = { sessionId: session.id, callId: 'call_1_0', argsDigest, dispatchNo: 1 };
  expect(view.pending[0]?.next).toEqual({ action: 'resolve', ...seen });
  return session;
}

test('it landed, says a person: their word is the result, and nothing is run again', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const session = await lose(world, 'after refundBlind');
  const [row] = await world.control.refunds();
  await resolve(session, 'call_1_0', { outcome: 'landed', output: { id: row?.id ?? null } }, { by: 'ada' });
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    result: { content: { id: row?.id }, isError: false },
    resolutions: [{ dispatchNo: 1, outcome: 'landed', by: 'ada' }],
    dispatches: [{ no: 1, outcome: 'landed' }],
  });
  expect(await world.control.refunds()).toHaveLength(1);
  // The second to answer is told that the call is settled.
  expect(await rejection(resolve(session, 'call_1_0', { outcome: 'absent' }))).toMatchObject({
    code: 'CALL_NOT_PENDING',
  });
});

test('it did not happen, says a person: it is dispatched again with the same key', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const session = await lose(world, 'request');
  const [asked] = await session.approvals();
  await resolve(session, 'call_1_0', { outcome: 'absent' }, { by: 'ada' });
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    resolutions: [{ dispatchNo: 1, outcome: 'absent', by: 'ada' }],
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
  await resolve(session, 'call_1_0', { outcome: 'failed', reason: 'the bank is closed' }, { by: 'ada' });
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({ status: { kind: 'failed', certain: false }, result: { isError: true } });
  expect(world.model.requests.at(-1)?.request.toolResults).toMatchObject([
    { toolName: 'refundBlind', text: expect.stringContaining('the bank is closed') },
  ]);
  expect(await world.control.refunds()).toEqual([]);
});

test('two operators, and a lost reply: what was said of the first dispatch does not hold for the second', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const session = await lose(world, 'request');
  // Both look at dispatch 1.
  const [ada] = await session.approvals();
  const [bob] = await session.approvals();
  if (ada === undefined || bob === undefined) throw new Error('no call waits');
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'drop-connection' });
  await session.resolve(ada, { outcome: 'absent' }, { by: 'ada' });
  // Dispatch 2 lands, and its reply is lost.
  const { pending } = await world.until(session, ({ pending: [call] }) => {
    return call?.status.kind === 'unknown' && call.dispatchNo === 2;
  });
  const late = session.resolve(bob, { outcome: 'absent' }, { by: 'bob' });
  expect(await rejection(late)).toMatchObject({
    code: 'DISPATCH_MISMATCH',
    message: expect.stringMatching(/is at dispatch 2, not 1: ada said absent of dispatch 1 at .*Z\. Read/),
    details: { dispatchNo: 2, resolutions: [{ dispatchNo: 1, outcome: 'absent', by: 'ada' }] },
  });
  const others = { ...bob, dispatchNo: 2, argsDigest: '0'.repeat(64) };
  expect(await rejection(session.resolve(others, { outcome: 'absent' }))).toMatchObject({
    code: 'DIGEST_MISMATCH',
  });
  const [row] = await world.control.refunds();
  const landed = { outcome: 'landed', output: { id: row?.id ?? null } } as const;
  await session.resolve(pending[0] ?? bob, landed, { by: 'bob' });
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(await world.control.refunds()).toHaveLength(1);
  expect(log[0]?.resolutions).toMatchObject([
    { dispatchNo: 1, outcome: 'absent', by: 'ada' },
    { dispatchNo: 2, outcome: 'landed', by: 'bob' },
  ]);
});
