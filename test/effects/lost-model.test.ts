/** Workers die one after the other in one model call: the session asks again, shows the cost, and stops at its budget. */
import { expect, test } from 'vitest';
import type { Script } from '../../src/testing/index.ts';
import { openWorld, type World } from '../support/world.ts';

/** Each of the first requests is never answered. */
const hangs =
  (times: number): Script =>
  ({ repeat }) =>
    repeat < times ? { fault: 'hang' } : { text: 'Hello.' };

/** Workers that die when the model has been asked. */
async function loseWorkers(world: World, count: number): Promise<void> {
  for (let lost = 0; lost < count; lost++) {
    const before = world.model.requests.length;
    const worker = await world.startWorkerProcess();
    await expect.poll(() => world.model.requests.length, { timeout: 60_000 }).toBe(before + 1);
    await worker.crash();
  }
}

test('four workers lost in one model call: it goes on by itself, with a rest between, and shows the cost', async () => {
  const world = await openWorld(hangs(4));
  const session = await world.begin('priced');
  await loseWorkers(world, 4);
  await world.startWorker();
  const { budget, notices, lastText } = await world.until(session, 'idle', 'waiting');
  expect(lastText).toBe('Hello.');
  expect(notices.map(({ kind }) => kind)).toEqual(Array(4).fill('worker_lost'));
  expect(notices.at(-1)?.message).toMatch(/asked again \(4 lost replies so far, charged \$0\.\d+ at most\)/);
  expect(budget.spent).toMatchObject({ lostReplies: 4, turns: 1 });
  expect(budget.spent.lostUsd).toBeGreaterThan(0);
  expect(budget.spent.usd).toBeGreaterThan(budget.spent.lostUsd);
  expect(budget.reserved).toEqual({ usd: 0, tokens: 0 });
  await world.check(session);
});

test('workers lost in a model call: the budget is the cap', async () => {
  const world = await openWorld(hangs(10));
  const session = await world.begin('priced');
  const worker = await world.startWorkerProcess();
  await expect.poll(() => world.model.requests.length, { timeout: 60_000 }).toBe(1);
  const { budget } = await session.state();
  // Room for two calls that are lost, and for no third.
  await session.setBudget({ limits: { tokens: Math.floor(budget.reserved.tokens * 2.5) } });
  await worker.crash();
  await loseWorkers(world, 1);
  await world.startWorker();
  const view = await world.until(session, 'idle', 'waiting');
  expect(view.wait).toMatchObject({ reason: 'budget', message: expect.stringMatching(/^tokens: /) });
  expect(view.budget.spent.lostReplies).toBe(2);
  expect(world.model.requests).toHaveLength(2);
  await world.check(session);
});
