/** A worker is frozen before it asked the model, and wakes when its successor has the reply on record. */
import { expect, test } from 'vitest';
import { openWorld } from '../support/world.ts';

test('woken before its request: it asks whether the call is still its own, and pays for no reply that is on record', async () => {
  const world = await openWorld([{ text: 'Hello.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['before model', 'after model'] });
  const session = await world.begin();
  await first.reached('before model');
  first.freeze();
  // It is released, and will go on at this line as soon as it wakes.
  first.release('before model');
  await world.startWorker();
  await world.until(session, 'idle');
  expect(world.model.requests).toHaveLength(1);

  first.wake();
  const { detail } = await first.reached('after model');
  expect(JSON.parse(detail)).toMatchObject({ kind: 'failed', failure: 'worker_lost', maybeBilled: 0 });
  expect(world.model.requests).toHaveLength(1);
  await world.check(session);
});
