import { hostname } from 'node:os';
import { Client } from '@temporalio/client';
import { Worker, type WorkerOptions } from '@temporalio/worker';
import { archiveWorkflowId } from '../contract/archive.ts';
import { defined } from '../contract/json.ts';
import type { SessionWorkerOptions } from '../worker/create-worker.ts';
import { withEncodedFailures } from '../worker/encoded-failures.ts';
import { closing, openConnection, whereTo } from '../worker/open-connection.ts';
import { workflowsFor } from '../worker/workflow-bundle.ts';
import { createArchiveActivities } from './exporter.ts';
import { DEFAULT_ARCHIVE, startArchive } from './start.ts';

/** Options of an archive's worker, besides Temporal's own `WorkerOptions`. */
export interface ArchiveWorkerOptions extends Omit<WorkerOptions, 'taskQueue'> {
  /** The archive: a file on a disk of this machine, or the URL of a PostgreSQL database. Created if missing. */
  path: string;
  /** The name of the archive, if the namespace has several. Default: `default`. */
  name?: string;
  /** The address of Temporal, if there is no `connection`. Default: as Temporal's own clients find it. */
  address?: SessionWorkerOptions['address'];
}

/**
 * Creates the worker of an archive, and starts its exporter unless it runs. The exporter is a workflow that stores the
 * checkpoints of all sessions of the namespace in the archive as they are made. Start the worker with `worker.run()`.
 * After a stop the exporter continues where it was. It retries what fails until it succeeds, and `archiveStatus` says
 * what fails. A connection that the worker opened is closed after the run.
 *
 * @throws PerdureError `SERVER_UNAVAILABLE` when no `connection` is given and the address does not answer;
 * `INVALID_ARGUMENT`
 *
 * @example
 * ```ts
 * import { createArchiveWorker } from 'perdure/archive';
 *
 * const exporter = await createArchiveWorker({ path: 'checkpoints.db', address: 'localhost:7233' });
 * await exporter.run();
 * ```
 */
export async function createArchiveWorker(options: ArchiveWorkerOptions): Promise<Worker> {
  const { path, name = DEFAULT_ARCHIVE, address, ...rest } = withEncodedFailures(options);
  const { dataConverter } = rest;
  const activities = { ...createArchiveActivities({ path, dataConverter }) };
  const found = rest.connection === undefined ? whereTo(address) : undefined;
  const connection = rest.connection ?? (await openConnection(found?.connection ?? {}));
  const namespace = rest.namespace ?? found?.namespace ?? 'default';
  try {
    const client = new Client({
      connection,
      namespace,
      ...defined({ dataConverter }),
    });
    await startArchive(client, name);
    return await Worker.create({
      identity: `${process.pid}@${hostname()}`,
      stickyQueueScheduleToStartTimeout: '1s',
      // The exporter sends a heartbeat every two seconds, and counts as dead after ten.
      maxHeartbeatThrottleInterval: '2s',
      defaultHeartbeatThrottleInterval: '2s',
      ...rest,
      connection,
      namespace,
      taskQueue: archiveWorkflowId(name),
      ...(await workflowsFor(rest)),
      activities,
      plugins: [...(found === undefined ? [] : [closing(connection)]), ...(rest.plugins ?? [])],
    });
  } catch (error) {
    if (rest.connection === undefined) await connection.close();
    throw error;
  }
}
