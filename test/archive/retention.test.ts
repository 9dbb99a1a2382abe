/** A namespace of the shortest retention that a server takes, and what is left when its time is over. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import Database from 'libsql';
import { expect, onTestFinished, test } from 'vitest';
import { ArchivedSaver } from '../../src/archive/door.ts';
import { findRuns } from '../../src/checkpoints/runs.ts';
import { segmentId, threadWorkflowId } from '../../src/contract/thread.ts';
import { type ServerHandle, startServer } from '../../src/server/index.ts';
import { findExecution } from '../../src/temporal/executions.ts';
import { startSqlite } from './homes.ts';
import { startArchiveServer } from './support.ts';

const HOUR = 3_600;
const NAMESPACE = 'brief';

/** Registers the namespace; a retention that is any shorter the server refuses. */
async function register({ address }: ServerHandle): Promise<void> {
  const connection = await Connection.connect({ address });
  const request = (seconds: number) => ({
    namespace: NAMESPACE,
    workflowExecutionRetentionPeriod: msToTs(seconds * 1_000),
  });
  const { workflowService } = connection;
  await expect(workflowService.registerNamespace(request(HOUR - 1))).rejects.toThrow(/retention/i);
  await workflowService.registerNamespace(request(HOUR));
  // A namespace is known everywhere when it is in the server's cache.
  await expect
    .poll(
      () => workflowService.listOpenWorkflowExecutions({ namespace: NAMESPACE }).then(() => 'known', String),
      {
        timeout: 60_000,
      },
    )
    .toBe('known');
  await connection.close();
}

/** Lets the retention of what has closed end in some seconds, instead of in an hour and up to half of one more. */
function passTheTime(path: string): number {
  const db = new Database(path);
  const due = new Date(Date.now() + 5_000).toISOString().replace('T', ' ').replace('Z', '+00:00');
  const [from, to] = [0.9, 2].map((hours) =>
    new Date(Date.now() + hours * HOUR * 1_000).toISOString().replace('T', ' '),
  );
  const { changes } = db
    .prepare('UPDATE timer_tasks SET visibility_timestamp = ? WHERE visibility_timestamp BETWEEN ? AND ?')
    .run(due, from, to);
  db.close();
  return changes;
}

test('when the shortest retention that a server takes is over, a live thread and an archived session are whole', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdure-retention-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const home = await startSqlite();
  onTestFinished(() => home.stop());
  const server = await startServer({ dir });
  await register(server);
  const before = await startArchiveServer(home, { address: server.address, namespace: NAMESPACE });
  const stage = await before.open();
  const thread = 'live';
  const stored = await Promise.all(
    Array.from({ length: 600 }, (_, n) => stage.saver.put(thread, { n }, { id: `id-${n}` })),
  );
  await stage.saver.putStep(thread, 'step', 'value');
  const session = await stage.talk('one');
  await session.cancel();
  await session.result();
  await stage.startExporter();
  const archived = await stage.untilArchived(session.id);
  const closedRuns = async (): Promise<string[]> => {
    const present = await findExecution(stage.client, threadWorkflowId(thread));
    const runs = await findRuns(stage.client, threadWorkflowId(thread), 'checkpointThread');
    return runs.filter((run) => run !== present?.runId);
  };
  await expect.poll(async () => (await closedRuns()).length).toBeGreaterThanOrEqual(1);
  const closed = await closedRuns();
  const sessionRun = archived[0]?.id.split(':')[0] ?? '';
  await before.close();

  // The server itself removes what has closed: only its clock is helped along, while it is down.
  await server.stop();
  // Jobs of the server itself, at noon and at midnight, may be due in that hour too.
  expect(passTheTime(join(dir, 'temporal.db'))).toBeGreaterThanOrEqual(closed.length + 1);
  const again = await startServer({ dir });
  onTestFinished(() => again.stop());
  const after = await startArchiveServer(home, { address: again.address, namespace: NAMESPACE });
  onTestFinished(() => after.close());
  const { client, saver } = await after.open();
  for (const run of closed)
    await expect
      .poll(() => findExecution(client, threadWorkflowId(thread), run), { timeout: 60_000 })
      .toBeNull();
  await expect.poll(() => findExecution(client, session.id, sessionRun), { timeout: 60_000 }).toBeNull();

  for (const run of closed) expect((await findExecution(client, segmentId(run)))?.running).toBe(true);
  expect(await saver.list(thread, { limit: 700 })).toEqual(stored.toReversed());
  expect((await saver.getStep(thread, 'step'))?.value).toBe('value');
  await saver.put(thread, { n: 'later' }, { parentId: 'id-0' });
  expect(await saver.get(session.id)).toBeNull();
  const both = new ArchivedSaver(saver, stage.archive);
  expect(await both.list(session.id, { limit: 1_000 })).toEqual(archived);
  expect(await both.get(session.id)).toEqual(archived[0]);
});
