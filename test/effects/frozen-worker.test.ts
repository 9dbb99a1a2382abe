/** A worker is frozen or cut off past its heartbeat and comes back: what it still wanted to do is somebody else's by now. */
import { expect, test } from 'vitest';
import { calls, openWorld, PEN } from '../support/world.ts';

test('woken before its fence: the fence stops it before a second effect', async () => {
  // The service ignores keys: only the fence stands between the two workers.
  const world = await openWorld([calls('refundFenced'), { text: 'Refunded.' }], { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['fence', 'fenced'] });
  const session = await world.begin();
  await first.reached('fence');
  first.freeze();
  // It is released, and will go on at this line as soon as it wakes.
  first.release('fence');
  await world.startWorker();
  await world.until(session, 'idle');
  expect(await world.control.refunds()).toHaveLength(1);

  first.wake();
  expect(await first.reached('fenced')).toMatchObject({ detail: 'FENCED' });
  const { calls: log } = await world.check(session);
  expect(await world.control.refunds()).toMatchObject([{ args: PEN, key: log[0]?.idempotencyKey }]);
  expect(log[0]?.status).toEqual({ kind: 'completed' });
  expect(log[0]?.dispatches.at(0)?.outcome).toBe('absent');
  expect(log[0]?.dispatches.at(-1)?.outcome).toBe('returned');
});

test('woken before it had run the tool: the fence before the tool stops it', async () => {
  const world = await openWorld([calls('refundCareless'), { text: 'Refunded.' }], { ignoreKeys: true });
  const first = await world.startWorkerProcess({
    breakAt: ['before refundCareless', 'after refundCareless'],
  });
  const session = await world.begin();
  await first.reached('before refundCareless');
  first.freeze();
  first.release('before refundCareless');
  await world.startWorker();
  await world.until(session, 'idle');

  first.wake();
  const { detail } = await first.reached('after refundCareless');
  expect(JSON.parse(detail)).toMatchObject({ kind: 'absent', reason: expect.stringContaining('fence') });
  await world.check(session);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('woken between its last fence and its request: nothing of ours can stop it, the service`s key makes it one', async () => {
  const world = await openWorld([calls('refundCareless'), { text: 'Refunded.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['request', 'refunded'] });
  const session = await world.begin();
  await first.reached('request');
  first.freeze();
  first.release('request');
  await world.startWorker();
  await world.until(session, 'idle');

  first.wake();
  await first.reached('refunded');
  const { calls: log } = await world.check(session);
  expect(await world.control.refunds()).toMatchObject([{ key: log[0]?.idempotencyKey }]);
});

test('woken with the reply in its hands: its result comes too late, and the verified one stands', async () => {
  const world = await openWorld([calls('refundCareless'), { text: 'Refunded.' }], { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['refunded', 'after refundCareless'] });
  const session = await world.begin();
  await first.reached('refunded');
  first.freeze();
  first.release('refunded');
  await world.startWorker();
  await world.until(session, 'idle');
  first.wake();
  await first.reached('after refundCareless');
  first.release('after refundCareless');
  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({ status: { kind: 'completed' }, dispatches: [{ outcome: 'landed' }] });
  expect(await world.control.refunds()).toHaveLength(1);
});

test('cut off from Temporal, and never frozen: it is refused at its fence when it is back', async () => {
  const world = await openWorld([calls('refundFenced'), { text: 'Refunded.' }], { ignoreKeys: true });
  const wire = await world.openWire();
  const first = await world.startWorkerProcess({
    breakAt: ['fence', 'fenced'],
    connection: wire.connection,
  });
  const session = await world.begin();
  await first.reached('fence');
  wire.hold();
  await world.startWorker();
  await world.until(session, 'idle');
  // It goes on now, and its question does not get through.
  first.release('fence');
  wire.release();
  expect(await first.reached('fenced')).toMatchObject({ detail: 'FENCED' });
  const { calls: log } = await world.check(session);
  expect(await world.control.refunds()).toMatchObject([{ key: log[0]?.idempotencyKey }]);
});

test('cut off from Temporal, and never frozen: it has stopped its request by itself before the call is somebody else`s', async () => {
  const world = await openWorld([calls('refund'), { text: 'Refunded.' }], { ignoreKeys: true });
  const wire = await world.openWire();
  const first = await world.startWorkerProcess({
    breakAt: ['request', 'no reply', 'after refund'],
    connection: wire.connection,
  });
  const session = await world.begin();
  await first.reached('request');
  wire.hold();
  await world.startWorker();
  await world.until(session, 'idle');
  // Nobody could tell it, and it asks nobody.
  const { detail } = await first.reached('after refund');
  expect(JSON.parse(detail)).toMatchObject({
    kind: 'unknown',
    reason: expect.stringContaining('may have given the call to another worker'),
  });
  first.release('request');
  await first.reached('no reply');
  const { calls: log } = await world.check(session);
  expect(await world.control.refunds()).toMatchObject([{ key: log[0]?.idempotencyKey }]);
  expect(log[0]?.dispatches.map(({ outcome }) => outcome)).toEqual(['absent', 'returned']);
});
