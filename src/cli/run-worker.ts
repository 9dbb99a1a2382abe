/** A worker that runs until it is interrupted. */
import { relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DefaultLogger, type NativeConnection, Runtime, type Worker } from '@temporalio/worker';
import { defined } from '../contract/json.ts';
import { command } from '../session/commands.ts';
import { pollersOf, type WorkerVersion } from '../temporal/pollers.ts';
import { versionsOf } from '../temporal/versions.ts';
import { createWorker, type DeploymentOptions, openConnection } from '../worker/index.ts';
import type { Cli } from './cli.ts';
import { loadAgents } from './load-agents.ts';
import { clean } from './terminal.ts';
import type { WorkerReport } from './worker-report.ts';

/** Pause between two checks whether the server has seen the worker, in milliseconds. */
const LOOK_MS = 50;

interface Options {
  /** It reports to the parent process, and ends with it. */
  supervised: boolean;
  deployment?: DeploymentOptions;
}

/** Runs a module's agents until it is interrupted. */
export async function runWorker(cli: Cli, path: string, { supervised, deployment }: Options): Promise<void> {
  const stop = cli.untilInterrupted();
  const report = (message: WorkerReport): void => void (supervised && process.send?.(message));
  if (supervised) process.once('disconnect', () => cli.interrupt());
  const onFile = (file: string): void => report({ type: 'file', file });
  const loaded = await loadAgents(path, onFile);
  const converter = await cli.dataConverter(onFile);
  const { server, values, live } = await cli.connect();
  const { connectionOptions, namespace } = server;
  const { taskQueue } = cli;
  if (stop.aborted) return;
  // We handle signals: the runtime's own handlers would end the worker a second time.
  Runtime.install({ logger: new DefaultLogger('WARN'), shutdownSignals: [] });
  const connection = await openConnection(connectionOptions);
  try {
    const worker = await createWorker({
      ...loaded,
      ...converter,
      connection,
      namespace,
      taskQueue,
      ...defined({ deployment, values, live }),
      shutdownForceTime: '20s',
    });
    const running = worker.run();
    const end = (): void => (worker.getState() === 'RUNNING' ? worker.shutdown() : undefined);
    stop.addEventListener('abort', end, { once: true });
    if (stop.aborted) end();
    // Some servers do not show pollers to a worker: then the worker is reported as ready a moment early.
    const polling = untilPolling(worker, connection, namespace, taskQueue, stop).catch(() => undefined);
    await Promise.race([running, polling]);
    if (worker.getState() === 'RUNNING') {
      const agents = loaded.agents.map(({ name }) => name);
      const { address } = connectionOptions;
      const { version: named } = worker.options.workerDeploymentOptions ?? {};
      const version = named && { deployment: named.deploymentName, buildId: named.buildId };
      const ready = {
        type: 'ready',
        agents,
        taskQueue,
        namespace,
        address,
        pid: process.pid,
        ...defined({ version }),
      } as const;
      report(ready);
      if (!supervised) {
        cli.terminal.item(
          ready,
          () =>
            `ready: ${agents.join(', ')} from ${relative('', path)} on task queue ${taskQueue} ` +
            `(namespace ${namespace} at ${address}, pid ${process.pid})` +
            (version === undefined ? '' : `, version ${version.buildId} of ${version.deployment}`),
        );
        if (version !== undefined) await tellCurrent(cli, version);
      }
    }
    await running;
  } finally {
    // A worker that was ended by force still uses the connection. The end of the process ends both.
    await connection.close().catch(() => undefined);
  }
}

/** Says when no version is current: then no worker of the deployment gets new sessions. */
async function tellCurrent(cli: Cli, { deployment, buildId }: WorkerVersion): Promise<void> {
  const { client } = await cli.connect();
  const versions = await versionsOf(client, deployment).catch(() => null);
  if (versions === null || versions.some(({ status }) => status === 'current')) return;
  const next = command('versions', 'set-current', buildId, '--deployment', deployment);
  cli.terminal.warn(
    clean(`no version of ${deployment} is current, so new sessions wait. Make this one current: ${next}`),
  );
}

/** Resolves when the server has seen this worker poll for both kinds of tasks. */
async function untilPolling(
  worker: Worker,
  connection: NativeConnection,
  namespace: string,
  taskQueue: string,
  stop: AbortSignal,
): Promise<void> {
  const { identity } = worker.options;
  while (!stop.aborted) {
    const { workflow, activity } = await pollersOf(connection.workflowService, namespace, taskQueue);
    if (workflow.includes(identity) && activity.includes(identity)) return;
    await delay(LOOK_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}
