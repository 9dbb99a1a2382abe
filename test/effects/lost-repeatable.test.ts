/** A worker dies during a call that is safe to repeat: Temporal runs it again, and the session asks nobody. */
import { expect, test } from 'vitest';
import { calls, openWorld } from '../support/world.ts';

test('a write is run again with the same key, in the same dispatch: a service that honours it has one row', async () => {
  const world = await openWorld([calls('note'), { text: 'Noted.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['after note'] });
  const session = await world.begin();
  await first.reached('after note');
  await first.crash();
  await world.startWorkerProcess();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    dispatches: [{ no: 1, outcome: 'returned' }],
  });
  expect(await world.control.refunds()).toMatchObject([{ key: log[0]?.idempotencyKey }]);
});

test('a write may happen twice where the service ignores the key: that is what `write` says of it', async () => {
  const world = await openWorld([calls('note'), { text: 'Noted.' }], { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['after note'] });
  const session = await world.begin();
  await first.reached('after note');
  await first.crash();
  await world.startWorkerProcess();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  const key = log[0]?.idempotencyKey;
  expect(await world.control.refunds()).toMatchObject([{ key }, { key }]);
});

test('a read is run again', async () => {
  const world = await openWorld([calls(['order', { id: '1001' }]), { text: 'Found.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['request'] });
  const session = await world.begin();
  await first.reached('request');
  await first.crash();
  await world.startWorkerProcess();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    dispatches: [{ no: 1, outcome: 'returned' }],
    result: { content: { id: '1001', attempt: 2 } },
  });
});
