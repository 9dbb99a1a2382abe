/** Workers that die while they read, or between the reads and the reply: what was read stays, and no reply is paid twice. */
import { expect, test } from 'vitest';
import type { Session } from '../../src/index.ts';
import { heartbeats } from '../support/heartbeats.ts';
import { calls, openWorld, type World } from '../support/world.ts';

const READS = calls(['order', { id: '1001' }], ['peek', { id: 'a' }]);

/** A session that has ended its turn although its worker died at this point of the reply that follows the reads. */
async function diedAtSecondReply(point: string): Promise<{ world: World; session: Session }> {
  const world = await openWorld([READS, { text: 'Seen.' }]);
  const first = await world.startWorkerProcess({ breakAt: [point] });
  const session = await world.begin('silent');
  await first.reached(point);
  first.release(point);
  await first.reached(point);
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle');
  return { world, session };
}

test('a worker that dies while reads run long: its successor takes what was read, and nothing is charged', async () => {
  const world = await openWorld([READS, { text: 'Seen.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['peek'] });
  const session = await world.begin();
  await first.reached('peek');
  await heartbeats(world, session, '"callId":"call_1_0"', '"stage":"reading"');
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle');

  const { calls: log, budget } = await world.check(session);
  expect(log).toMatchObject([
    { dispatches: [{ no: 1, outcome: 'returned' }], result: { content: { id: '1001', attempt: 1 } } },
    // A server may give an attempt to a poll of the dead worker.
    { dispatches: [{ no: 1, outcome: 'returned', attempts: expect.any(Number) }], result: { content: 'a' } },
  ]);
  expect(log[0]?.dispatches[0]).not.toHaveProperty('attempts');
  expect(budget.spent).toMatchObject({ turns: 2, toolCalls: 2, lostReplies: 0 });
  expect(world.model.requests).toHaveLength(2);
});

test('a worker that dies between long reads and the reply: what was read stays, and the reply is charged once', async () => {
  const world = await openWorld([READS, { text: 'Seen.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['peek', 'model request'] });
  const session = await world.begin();
  await first.reached('model request');
  first.release('model request');
  await first.reached('peek');
  await heartbeats(world, session, '"stage":"reading"');
  first.release('peek');
  await first.reached('model request');
  await heartbeats(world, session, '"callId":"call_1_1"');
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle');

  const { calls: log, budget } = await world.check(session);
  for (const call of log) {
    expect(call.dispatches).toMatchObject([{ no: 1, outcome: 'returned' }]);
    expect(call.dispatches[0]).not.toHaveProperty('attempts');
  }
  expect(budget.spent).toMatchObject({ turns: 2, toolCalls: 2, lostReplies: 1 });
  expect(world.model.requests).toHaveLength(2);
});

test('a worker that dies between short reads and the reply: they run again apart, and the reply is charged once', async () => {
  const { world, session } = await diedAtSecondReply('model request');
  const { calls: log, budget } = await world.check(session);
  for (const { dispatches } of log)
    expect(dispatches).toMatchObject([
      { no: 1, outcome: 'absent' },
      { no: 2, outcome: 'returned' },
    ]);
  expect(budget.spent).toMatchObject({ turns: 2, toolCalls: 2, lostReplies: 1 });
  expect(world.model.requests).toHaveLength(2);
});

test('a worker that dies after the reply came: it was paid for, and is charged once', async () => {
  const { world, session } = await diedAtSecondReply('after model');
  const { budget } = await world.check(session);
  expect(budget.spent).toMatchObject({ turns: 2, toolCalls: 2, lostReplies: 1 });
  expect(world.model.requests).toHaveLength(3);
});

test('a read that kills its worker again and again: the model is charged once at most, and it ends apart', async () => {
  const world = await openWorld([calls(['peek', { id: 'a' }]), { text: 'Seen.' }]);
  const session = await world.begin('silent');
  for (let death = 1; death <= 3; death++) {
    const worker = await world.startWorkerProcess({ breakAt: ['peek'] });
    await worker.reached('peek');
    await worker.crash();
  }
  await world.startWorker();
  await world.until(session, 'idle');

  const { calls: log, budget } = await world.check(session);
  expect(log[0]?.dispatches).toMatchObject([
    { no: 1, outcome: 'absent' },
    { no: 2, outcome: 'returned', attempts: expect.any(Number) },
  ]);
  expect(budget.spent).toMatchObject({ turns: 2, toolCalls: 1, lostReplies: 1 });
  expect(world.model.requests).toHaveLength(2);
});

test('a worker that dies within the first moments of a read: its successor knows that it had not asked the model', async () => {
  const world = await openWorld([calls(['peek', { id: 'a' }]), { text: 'Seen.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['peek'] });
  const session = await world.begin('silent');
  await first.reached('peek');
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle');

  const { calls: log, budget } = await world.check(session);
  expect(log[0]?.dispatches).toMatchObject([{ no: 1, outcome: 'returned', attempts: 2 }]);
  expect(budget.spent).toMatchObject({ turns: 2, toolCalls: 1, lostReplies: 0 });
  expect(world.model.requests).toHaveLength(2);
});

test('two workers that die one after the other: the third takes what the first had read', async () => {
  const world = await openWorld([READS, { text: 'Seen.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['peek'] });
  const session = await world.begin('slowToBegin');
  await first.reached('peek');
  await heartbeats(world, session, '"callId":"call_1_0"', '"stage":"reading"');
  await first.crash();
  // It dies before a heartbeat of its own reads: the server would forget those of the attempt before.
  const second = await world.startWorkerProcess({ breakAt: ['instructions'] });
  await second.reached('instructions');
  await heartbeats(world, session, '"attempt":2', '"callId":"call_1_0"');
  await second.crash();
  await world.startWorker();
  await world.until(session, 'idle');

  const { calls: log, budget } = await world.check(session);
  expect(log[0]).toMatchObject({ result: { content: { id: '1001', attempt: 1 } } });
  expect(log[0]?.dispatches).toMatchObject([{ no: 1, outcome: 'returned' }]);
  expect(log[0]?.dispatches[0]).not.toHaveProperty('attempts');
  // Nobody knows whether the second one had asked the model.
  expect(budget.spent).toMatchObject({ turns: 2, toolCalls: 2, lostReplies: 1 });
  expect(world.model.requests).toHaveLength(2);
});
