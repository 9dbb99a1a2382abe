/** A mutation that gives no clear answer on a healthy worker: time-outs, exceptions, and errors that are certain. */
import { expect, test } from 'vitest';
import { resolve } from '../support/decide.ts';
import { calls, openWorld, PEN } from '../support/world.ts';

const done = { text: 'Done.' };

test('timed out, and the effect lands late: it settles before anybody looks, and is found', async () => {
  const world = await openWorld([calls('refundTimed'), done], { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'before-write', do: 'hang' });
  await world.startWorker();
  const session = await world.begin();
  const call = await world.untilCall(session, 'call_1_0', 'settling');
  expect(call.status).toMatchObject({ reason: expect.stringContaining('timed out after 300 ms') });
  // The client is gone; the service accepts the request all the same.
  expect(await world.control.refunds()).toEqual([]);
  await world.control.release();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  const rows = await world.control.refunds();
  expect(rows).toMatchObject([{ args: PEN, key: log[0]?.idempotencyKey }]);
  expect(log[0]).toMatchObject({
    dispatches: [{ outcome: 'landed' }],
    result: { content: { id: rows[0]?.id } },
  });
});

test('the connection breaks after the effect: the exception is not believed, verify finds it', async () => {
  const world = await openWorld([calls('refund'), done], { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'drop-connection' });
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({ status: { kind: 'completed' }, dispatches: [{ outcome: 'landed' }] });
  expect(await world.control.refunds()).toHaveLength(1);
});

test('the service fails before the effect: verify finds nothing, the same key is sent again', async () => {
  const world = await openWorld([calls('refund'), done], { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'before-write', do: 'status', status: 503 });
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    dispatches: [
      { no: 1, outcome: 'absent' },
      { no: 2, outcome: 'returned' },
    ],
  });
  expect(await world.control.refunds()).toMatchObject([{ key: log[0]?.idempotencyKey }]);
});

test('it never succeeds: after the last dispatch the model is told that nothing happened', async () => {
  const world = await openWorld([calls('refund'), done], { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'before-write', do: 'status', status: 503, times: 3 });
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]?.status).toEqual({ kind: 'failed', certain: true });
  expect(log[0]?.dispatches.map(({ outcome }) => outcome)).toEqual(['absent', 'absent', 'absent']);
  expect(world.model.requests.at(-1)?.request.toolResults).toMatchObject([
    { text: expect.stringContaining('refund was not executed') },
  ]);
  expect(await world.control.refunds()).toEqual([]);
});

test('no connection can be made: certainly not attempted, tried again after a while without verify', async () => {
  const world = await openWorld([calls('refundBlind'), done]);
  await world.stopService();
  await world.startWorker();
  const session = await world.begin();
  await world.untilCall(session, 'call_1_0', 'backoff');
  await world.startService();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({ status: { kind: 'completed' } });
  const outcomes = log[0]?.dispatches.map(({ outcome }) => outcome) ?? [];
  expect(outcomes.at(-1)).toBe('returned');
  expect(outcomes.slice(0, -1).every((outcome) => outcome === 'absent')).toBe(true);
  expect(await world.control.refunds()).toMatchObject([{ key: log[0]?.idempotencyKey }]);
});

test('the service declines: certainly not done, not tried again, and the model is told why', async () => {
  const world = await openWorld([calls(['refundBlind', { ...PEN, cents: 1_000_000 }]), done]);
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'failed', certain: true },
    dispatches: [{ outcome: 'absent' }],
  });
  expect(log[0]?.dispatches).toHaveLength(1);
  expect(world.model.requests.at(-1)?.request.toolResults[0]?.text).toContain('more than the charge');
});

test('verify throws at every attempt: a person is asked, and says that it landed', async () => {
  const world = await openWorld([calls('refund'), done], { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  await world.startWorker();
  const session = await world.begin();
  await world.control.held();
  const [row] = await world.control.refunds();
  await world.stopService();
  const { pending } = await world.until(session, 'unknown_effect');
  expect(pending).toMatchObject([{ status: { reason: expect.stringContaining('verify of refund') } }]);
  await resolve(session, 'call_1_0', { outcome: 'landed', output: { id: row?.id ?? null } });
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({ status: { kind: 'completed' }, resolutions: [{ outcome: 'landed' }] });
  await world.startService();
  expect(await world.control.refunds()).toHaveLength(1);
});

test('verify never answers: it is given up, and a person is asked', async () => {
  const world = await openWorld([calls('refundSilent'), done], { ignoreKeys: true });
  await world.startWorker();
  const session = await world.begin();
  const { pending } = await world.until(session, 'unknown_effect');
  expect(pending).toMatchObject([{ callId: 'call_1_0', status: { kind: 'unknown' } }]);
  await resolve(session, 'call_1_0', { outcome: 'failed' });
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]?.status).toEqual({ kind: 'failed', certain: false });
});
