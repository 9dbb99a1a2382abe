/** What can go wrong while something is being put right. */
import { expect, test } from 'vitest';
import { calls, openWorld } from '../support/world.ts';

const script = [calls('refund'), { text: 'Refunded.' }];

test('a crash during recovery: the second worker dies while it verifies, and the third verifies again', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['after refund'] });
  const session = await world.begin();
  await first.reached('after refund');
  await first.crash();
  const second = await world.startWorkerProcess({ breakAt: ['before verify refund'] });
  await second.reached('before verify refund');
  await second.crash();
  await world.startWorkerProcess();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({ status: { kind: 'completed' }, dispatches: [{ outcome: 'landed' }] });
  expect(await world.control.refunds()).toMatchObject([{ key: log[0]?.idempotencyKey }]);
});

test('the second worker dies when it knows the answer and has not recorded it: it is looked up once more', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['request'] });
  const session = await world.begin();
  await first.reached('request');
  await first.crash();
  const second = await world.startWorkerProcess({ breakAt: ['after verify refund'] });
  expect(await second.reached('after verify refund')).toMatchObject({
    detail: expect.stringContaining('absent'),
  });
  await second.crash();
  await world.startWorkerProcess();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]?.dispatches.map(({ outcome }) => outcome)).toEqual(['absent', 'returned']);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('the second dispatch is lost, too: each follows a recorded absent, with one key', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['request'] });
  const session = await world.begin();
  await first.reached('request');
  await first.crash();
  const second = await world.startWorkerProcess({ breakAt: ['after refund'] });
  await second.reached('after refund');
  await second.crash();
  await world.startWorkerProcess();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]?.dispatches).toMatchObject([
    { no: 1, outcome: 'absent' },
    { no: 2, outcome: 'landed' },
  ]);
  expect(await world.control.refunds()).toMatchObject([{ key: log[0]?.idempotencyKey }]);
});

test('two workers at once, and one dies with a refund in its hands: the other finishes all of it', async () => {
  const orders = ['ch_1001', 'ch_1002', 'ch_1003'].map((chargeId): [string, object] => [
    'refund',
    { chargeId, cents: 500, reason: 'late' },
  ]);
  const world = await openWorld([calls(...orders), { text: 'Refunded.' }], { ignoreKeys: true });
  const doomed = await world.startWorkerProcess({ breakAt: ['after refund'] });
  const session = await world.begin('parallel');
  await doomed.reached('after refund');
  await world.startWorkerProcess();
  await doomed.crash();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log.map(({ status }) => status.kind)).toEqual(['completed', 'completed', 'completed']);
  const rows = await world.control.refunds();
  expect(rows).toHaveLength(3);
  expect(new Set(rows.map(({ key }) => key))).toEqual(
    new Set(log.map(({ idempotencyKey }) => idempotencyKey)),
  );
});

test('looked at all the while it is recovered: what people see does not change what happens', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['after model'] });
  const session = await world.begin();
  await first.reached('after model');
  // One of these queries comes between the lost call's result and the workflow task that takes it
  // up. A session that let it through would have another history of times than its own replay.
  const looking = world.until(session, 'idle');
  await first.crash();
  await world.startWorkerProcess();
  expect(await looking).toMatchObject({ sessionId: session.id });
  const live = await world.check(session);
  expect(live.notices).toMatchObject([{ message: expect.stringContaining('lost') }]);

  // Another worker, which has never seen it, says the same.
  await world.startWorkerProcess();
  expect(await session.snapshot()).toEqual(live);
});
