/** A worker that has frozen with a poll open, which takes a query and never answers. */
import { Client, Connection } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { Sessions } from '../../src/index.ts';
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

test('a read that the history answers leaves no call behind, so that the connection can be closed', async () => {
  const world = await openWorld([{ text: 'Hello.' }]);
  const { client, namespace, taskQueue, address } = world;
  const worker = await world.startWorker();
  const { id } = await world.begin();
  await world.until(world.sessions.get(id), 'idle');
  await worker.stop();

  const connection = await Connection.connect({ address });
  onTestFinished(() => connection.close());
  let open = 0;
  const counted = new Proxy(connection.workflowService, {
    get: (service, name) => {
      const method: unknown = Reflect.get(service, name);
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        open += 1;
        try {
          return (await Reflect.apply(method, service, args)) as unknown;
        } finally {
          open -= 1;
        }
      };
    },
  });
  Object.defineProperty(connection, 'workflowService', { value: counted });
  const sessions = new Sessions(new Client({ connection, namespace }), { taskQueue });
  const swallowed = client.connection.withDeadline(Date.now() + 60_000, () =>
    client.workflowService.pollWorkflowTaskQueue({ namespace, taskQueue: { name: taskQueue } }),
  );
  const read = sessions.get(id).state();
  await swallowed;
  expect(await read).toMatchObject({ phase: 'idle', lastText: 'Hello.' });
  expect(open).toBe(0);
});
