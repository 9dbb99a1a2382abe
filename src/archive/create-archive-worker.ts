import { hostname } from 'node:os';
import { Client } from '@temporalio/client';
import { Worker, type WorkerOptions } from '@temporalio/worker';
import { archiveWorkflowId } from '../contract/archive.ts';
import { defined } from '../contract/json.ts';
import type { SessionWorkerOptions } from '../worker/create-worker.ts';
import { closing, openConnection, whereTo } from '../worker/open-connection.ts';
import { workflowsFor } from '../worker/workflow-bundle.ts';
import { createArchiveActivities } from './exporter.ts';
import { DEFAULT_ARCHIVE, startArchive } from './start.ts';

/** What the worker of an archive needs. What Temporal's `WorkerOptions` takes may be given beside it. */
export interface ArchiveWorkerOptions extends Omit<WorkerOptions, 'taskQueue'> {
  /** The archive: a file on a disk of this machine, or the URL of a PostgreSQL database; made when it is not there. */
  path: string;
  /** Tells archives of one namespace apart. Default: `default`. */
  name?: string;
  /** Where Temporal is, when no `connection` is given. Default: as Temporal's own clients find it. */
  address?: SessionWorkerOptions['address'];
}

/**
 * Creates the worker of an archive, and starts its exporter unless it runs: a workflow that stores the checkpoints
 * of all sessions of the namespace in an archive as they are made. Start it with `worker.run()`. The exporter goes on
 * where it stopped, whenever it was stopped; what fails is tried again until it succeeds, and `archiveStatus` says why.
 * A connection that it opened is closed after the run.
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
  const { path, name = DEFAULT_ARCHIVE, address, ...rest } = options;
  const activities = { ...createArchiveActivities({ path }) };
  const found = rest.connection === undefined ? whereTo(address) : undefined;
  const connection = rest.connection ?? (await openConnection(found?.connection ?? {}));
  const namespace = rest.namespace ?? found?.namespace ?? 'default';
  const { dataConverter } = rest;
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
      // The exporter gives a sign of life every two seconds, and is believed dead after ten.
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
