/** A worker that has frozen with a poll open, which takes a query and never answers. */
import { expect, test } from 'vitest';
import { openWorld } from '../support/world.ts';

test('a query that a silent worker has taken is answered by the next one', async () => {
  const world = await openWorld([{ text: 'Hello.' }]);
  const { client, namespace, taskQueue } = world;
  const first = await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');
  await first.stop();

  const taken = client.connection.withDeadline(Date.now() + 60_000, () =>
    client.workflowService.pollWorkflowTaskQueue({ namespace, taskQueue: { name: taskQueue } }),
  );
  const asked = session.state();
  expect((await taken).query?.queryType).toBe('state');
  await world.startWorker();
  expect(await asked).toMatchObject({ phase: 'idle', lastText: 'Hello.' });
});
