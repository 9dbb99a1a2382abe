/** A dispatch that certainly did not begin does not count towards a tool's attempts; one that began does. */
import { expect, test } from 'vitest';
import { calls, openWorld } from '../support/world.ts';

const script = [calls('refundOnce'), { text: 'Refunded.' }];

test('killed before the tool began: it is dispatched again, though the tool has one attempt', async () => {
  const world = await openWorld(script);
  const session = await world.begin();
  for (let death = 1; death <= 2; death++) {
    const worker = await world.startWorkerProcess({ breakAt: ['before refundOnce'] });
    await worker.reached('before refundOnce');
    await worker.crash();
  }
  await world.startWorker();
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    dispatches: [
      { outcome: 'absent', unbegun: true },
      { outcome: 'absent', unbegun: true },
      { outcome: 'returned' },
    ],
  });
  expect(await world.control.refunds()).toHaveLength(1);
});

test('killed before the tool began, without a verify: it is dispatched again, and no person is asked', async () => {
  const world = await openWorld([calls('refundBlind'), { text: 'Refunded.' }], { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['before refundBlind'] });
  const session = await world.begin('silent');
  await first.reached('before refundBlind');
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle', 'unknown_effect');
  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    dispatches: [{ outcome: 'absent', unbegun: true }, { outcome: 'returned' }],
    resolutions: [],
  });
  expect(await world.control.refunds()).toHaveLength(1);
});

test('frozen before the tool began: its heartbeat time-out says that it did not, and it is dispatched again', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['before refundOnce', 'after refundOnce'] });
  const session = await world.begin();
  await first.reached('before refundOnce');
  first.freeze();
  first.release('before refundOnce');
  await world.startWorker();
  await world.until(session, 'idle');

  first.wake();
  expect(JSON.parse((await first.reached('after refundOnce')).detail)).toMatchObject({
    kind: 'absent',
    unbegun: true,
  });
  const { calls: log } = await world.check(session);
  const outcomes = log[0]?.dispatches.map(({ outcome }) => outcome);
  expect(outcomes?.at(-1)).toBe('returned');
  expect(log[0]?.dispatches.slice(0, -1).every(({ unbegun }) => unbegun === true)).toBe(true);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('a worker that begins no call: it is dispatched again after longer and longer rests, until another worker has it', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  // Held before its activities begin, it sends no heartbeats and takes the next dispatch, too.
  const first = await world.startWorkerProcess({ breakAt: ['before refundOnce'] });
  const session = await world.begin();
  await world.until(session, 'acting');
  await expect
    .poll(async () => (await session.calls()).items[0]?.dispatches.length, { timeout: 60_000 })
    .toBeGreaterThanOrEqual(4);
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  const times = log[0]?.dispatches.map(({ at }) => Date.parse(at)) ?? [];
  const rests = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  expect(rests[1]).toBeGreaterThanOrEqual(2_000);
  expect(rests[2]).toBeGreaterThanOrEqual(4_000);
  expect(log[0]?.status).toEqual({ kind: 'completed' });
  expect(await world.control.refunds()).toHaveLength(1);
});

test.each(['killed', 'frozen'])(
  '%s after the tool began: the one attempt is used up, and the model is told',
  async (how) => {
    const world = await openWorld(script, { ignoreKeys: true });
    const first = await world.startWorkerProcess({ breakAt: ['request'] });
    const session = await world.begin();
    await first.reached('request');
    if (how === 'killed') await first.crash();
    else first.freeze();
    await world.startWorker();
    await world.until(session, 'idle');
    const { calls: log } = await world.check(session);
    expect(log[0]).toMatchObject({
      status: { kind: 'failed', certain: true },
      result: { content: expect.stringContaining('refundOnce was not executed') },
    });
    expect(log[0]?.dispatches).toHaveLength(1);
    expect(log[0]?.dispatches[0]).not.toHaveProperty('unbegun');
    expect(await world.control.refunds()).toHaveLength(0);
  },
);
