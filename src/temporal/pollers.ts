/** The workers that poll a task queue. */
import { hostname } from 'node:os';
import type { Client, Connection } from '@temporalio/client';
import proto, { type temporal } from '@temporalio/proto';
import { tsToMs } from './sdk-time.ts';

type TaskQueueService = Pick<Connection['workflowService'], 'describeTaskQueue'>;

/** A poll ends after a minute, so a live worker was seen within this time, in milliseconds. */
const SEEN_MS = 90_000;

const TYPES = { workflow: 1, activity: 2 } as const;

/** One build of the workers of a deployment. */
export interface WorkerVersion {
  deployment: string;
  buildId: string;
}

/** A worker, and the start of its last poll in milliseconds since 1970. */
export interface Poller {
  identity: string;
  seenMs: number;
  /** Only with worker versioning. */
  version: WorkerVersion | null;
}

const { WORKER_VERSIONING_MODE_VERSIONED } = proto.temporal.api.enums.v1.WorkerVersioningMode;

/** Whether two versions are the same. */
export function isVersion(a: WorkerVersion | null, b: WorkerVersion): boolean {
  return a?.deployment === b.deployment && a.buildId === b.buildId;
}

/** A version as the server writes it; `null` when it names none. */
export function namedVersion(
  version: temporal.api.deployment.v1.IWorkerDeploymentVersion | null | undefined,
): WorkerVersion | null {
  if (!version?.buildId) return null;
  return { deployment: version.deploymentName ?? '', buildId: version.buildId };
}

/** The workers that the server has seen on a task queue, most recent first, and the version that is current there. */
export async function pollersSeen(
  service: TaskQueueService,
  namespace: string,
  taskQueue: string,
  kind: keyof typeof TYPES,
): Promise<{ pollers: Poller[]; current: WorkerVersion | null }> {
  const { pollers, versioningInfo } = await service.describeTaskQueue({
    namespace,
    taskQueue: { name: taskQueue },
    taskQueueType: TYPES[kind],
  });
  const seen = (pollers ?? []).map(({ identity, lastAccessTime, deploymentOptions }) => ({
    identity: identity ?? '',
    seenMs: tsToMs(lastAccessTime),
    version:
      deploymentOptions?.workerVersioningMode === WORKER_VERSIONING_MODE_VERSIONED
        ? namedVersion(deploymentOptions)
        : null,
  }));
  const current = namedVersion(versioningInfo?.currentDeploymentVersion);
  return { pollers: seen.sort((a, b) => b.seenMs - a.seenMs), current };
}

/** Identities of the workers that poll a task queue, and of those that have died. */
export async function pollersOf(
  service: TaskQueueService,
  namespace: string,
  taskQueue: string,
): Promise<Record<keyof typeof TYPES | 'dead', string[]>> {
  const read = async (kind: keyof typeof TYPES): Promise<string[]> =>
    (await pollersSeen(service, namespace, taskQueue, kind)).pollers
      .filter(({ seenMs }) => Date.now() - seenMs < SEEN_MS)
      .map(({ identity }) => identity);
  const [workflow, activity] = await Promise.all([read('workflow'), read('activity')]);
  const lives = (identity: string): boolean => !hasDied(identity);
  const dead = [...new Set([...workflow, ...activity])].filter(hasDied);
  return { workflow: workflow.filter(lives), activity: activity.filter(lives), dead };
}

/** Whether a worker was seen of late, and has not died. */
export function isAlive({ identity, seenMs }: Poller): boolean {
  return Date.now() - seenMs < SEEN_MS && !hasDied(identity);
}

/** Whether a worker has died. Only workers of this machine can be checked, by the process in their identity. */
function hasDied(identity: string): boolean {
  const [, pid, host] = /^(\d+)@(.+)$/.exec(identity) ?? [];
  if (pid === undefined || host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as { code?: unknown }).code === 'ESRCH';
  }
}

/** Whether a worker polls for the workflows of a task queue. */
export async function isPolled(client: Client, taskQueue: string): Promise<boolean> {
  const { workflow } = await pollersOf(client.workflowService, client.options.namespace, taskQueue);
  return workflow.length > 0;
}
