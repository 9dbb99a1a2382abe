/** The plugin in a replay of recorded sessions, as one is made before an upgrade. */
import { DefaultLogger, type LogEntry, Runtime, Worker } from '@temporalio/worker';
import { expect, test } from 'vitest';
import { PerdurePlugin } from '../../src/index.ts';
import { calls, openWorld } from '../support/world.ts';

test('sessions replay with the plugin alone, hand the worker nothing, and nothing is logged', async () => {
  const logged: LogEntry[] = [];
  Runtime.install({ logger: new DefaultLogger('WARN', (entry) => logged.push(entry)) });
  const world = await openWorld([calls('refund'), { text: 'Refunded.' }]);
  await world.startWorker();
  const sessions = [await world.begin(), await world.begin()];
  for (const session of sessions) await world.until(session, 'idle');
  await sessions[0]?.cancel();
  await world.until(sessions[0] ?? expect.fail(), 'closed');
  const before = logged.length;

  const ids = sessions.map(({ id }) => id);
  const histories = ids.map(async (workflowId) => ({
    workflowId,
    history: await world.client.workflow.getHandle(workflowId).fetchHistory(),
  }));
  const handed: string[] = [];
  const noting = (name: string) => [name, { fn: () => void handed.push(name), callDuringReplay: true }];
  const perdure = Object.fromEntries(['remember', 'issued', 'leaves', 'writes', 'happened'].map(noting));
  const replayed = Worker.runReplayHistories(
    {
      plugins: [new PerdurePlugin({ agents: [] })],
      sinks: { perdure: { ...perdure, forget: { fn: () => {} } } },
    },
    await Promise.all(histories),
  );
  const results: [string, unknown][] = [];
  for await (const { workflowId, error } of replayed) results.push([workflowId, error]);
  expect(results).toEqual(ids.map((id) => [id, undefined]));
  expect(logged.slice(before)).toEqual([]);
  expect(handed).toEqual([]);
});
