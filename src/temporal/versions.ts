/** Worker deployment versions on the Temporal server, and which of them a workflow runs on. */
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import proto, { type temporal } from '@temporalio/proto';
import { PerdureError } from '../contract/errors.ts';
import { readError } from './errors.ts';
import { GRPC } from './grpc.ts';
import { isNotFound, orNull } from './index.ts';
import { isAlive, isVersion, namedVersion, pollersSeen, type WorkerVersion } from './pollers.ts';
import { tsToMs } from './sdk-time.ts';
import { quoted, runningSessions } from './visibility.ts';

const { VersioningBehavior, WorkerDeploymentVersionStatus, TaskQueueType } = proto.temporal.api.enums.v1;
const { PINNED_OVERRIDE_BEHAVIOR_PINNED } =
  proto.temporal.api.workflow.v1.VersioningOverride.PinnedOverrideBehavior;

/**
 * - `current`: new sessions start on it. `ramping`: some new sessions do.
 * - `draining`: sessions are pinned to it. `drained`: none is any more.
 * - `inactive`: it has never been current.
 */
export type VersionStatus = 'current' | 'ramping' | 'draining' | 'drained' | 'inactive';

/** A version, and what runs on it. */
export interface VersionSummary extends WorkerVersion {
  status: VersionStatus;
  /** ISO 8601. */
  createdAt: string;
  /** Identities of the workers that poll for its workflow tasks. */
  workers: string[];
  /** Number of running sessions that this version ran last, or that are pinned to it. It can lag by a second. */
  sessions: number;
}

/** All versions, and how many sessions run on each. */
export interface Versions {
  versions: VersionSummary[];
  /** Number of running sessions on workers without a version. */
  unversioned: number;
}

/** Where a workflow runs. */
export interface RunsOn {
  taskQueue: string;
  running: boolean;
  /** The version that completed its last workflow task. */
  version: WorkerVersion | null;
  /** Whether it stays on its version. */
  pinned: boolean;
  /** Set if somebody has overridden its behavior. With a version, the workflow is pinned to that version. */
  override: { version: WorkerVersion | null } | null;
  /** Whether its workflow task has failed or timed out, and is repeated. */
  isFailing: boolean;
}

type VersioningInfo = temporal.api.workflow.v1.IWorkflowExecutionVersioningInfo | null | undefined;

const STATUS: Partial<Record<number, VersionStatus>> = {
  [WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT]: 'current',
  [WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_RAMPING]: 'ramping',
  [WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING]: 'draining',
  [WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED]: 'drained',
};

/**
 * All versions of all deployments of the namespace, newest first in each, and how many sessions run on each.
 *
 * @throws PerdureError `SERVER_UNAVAILABLE`
 */
export async function listVersions(client: Client): Promise<Versions> {
  try {
    return await readVersions(client);
  } catch (error) {
    throw readError('the versions', error);
  }
}

async function readVersions(client: Client): Promise<Versions> {
  const { namespace } = client.options;
  const versions: VersionSummary[] = [];
  let nextPageToken: Uint8Array | null | undefined;
  do {
    const page = await client.workflowService.listWorkerDeployments({
      namespace,
      ...(nextPageToken ? { nextPageToken } : {}),
    });
    for (const { name } of page.workerDeployments ?? []) {
      const found = await versionsOf(client, name ?? '');
      versions.push(...(await Promise.all(found.map((version) => withCounts(client, version)))));
    }
    nextPageToken = page.nextPageToken;
  } while (nextPageToken?.length);
  const unversioned = await countSessions(client, 'TemporalWorkerDeploymentVersion IS NULL');
  return { versions, unversioned };
}

type Listed = Omit<VersionSummary, 'workers' | 'sessions'>;

/** The versions of one deployment, newest first; none if it does not exist. */
export async function versionsOf(client: Client, deployment: string): Promise<Listed[]> {
  const { namespace } = client.options;
  const described = await orNull(
    client.workflowService.describeWorkerDeployment({ namespace, deploymentName: deployment }),
  );
  return (described?.workerDeploymentInfo?.versionSummaries ?? [])
    .map(({ deploymentVersion, status, createTime }) => ({
      deployment,
      buildId: deploymentVersion?.buildId ?? '',
      status: STATUS[status ?? 0] ?? ('inactive' as const),
      createdAt: new Date(tsToMs(createTime)).toISOString(),
    }))
    .sort((a, b) => b.createdAt.localeCompare(a.createdAt));
}

async function withCounts(client: Client, version: Listed): Promise<VersionSummary> {
  const { deployment, buildId } = version;
  const { namespace } = client.options;
  const name = quoted('version', `${deployment}:${buildId}`);
  const [sessions, described] = await Promise.all([
    countSessions(client, `TemporalWorkerDeploymentVersion = ${name}`),
    orNull(
      client.workflowService.describeWorkerDeploymentVersion({
        namespace,
        deploymentVersion: { deploymentName: deployment, buildId },
      }),
    ),
  ]);
  const queues = (described?.versionTaskQueues ?? []).filter(
    ({ type }) => type === TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
  );
  const workers = await Promise.all(queues.map((queue) => workersOf(client, queue.name ?? '', version)));
  return { ...version, workers: [...new Set(workers.flat())], sessions };
}

async function countSessions(client: Client, condition: string): Promise<number> {
  return (await client.workflow.count(runningSessions(condition))).count;
}

/** Identities of the workers of a version that poll a task queue for workflow tasks. */
export async function workersOf(
  client: Client,
  taskQueue: string,
  version: WorkerVersion,
): Promise<string[]> {
  const { namespace } = client.options;
  const { pollers } = await pollersSeen(client.workflowService, namespace, taskQueue, 'workflow');
  return pollers
    .filter((poller) => isVersion(poller.version, version) && isAlive(poller))
    .map(({ identity }) => identity);
}

/** Where a workflow runs. @throws Temporal's `WorkflowNotFoundError` */
export async function runsOn(client: Client, workflowId: string): Promise<RunsOn> {
  const { taskQueue, status, raw } = await client.workflow.getHandle(workflowId).describe();
  const running = status.name === 'RUNNING';
  const isFailing = (raw.pendingWorkflowTask?.attempt ?? 1) > 1;
  return { taskQueue, running, isFailing, ...versioningOf(raw.workflowExecutionInfo?.versioningInfo) };
}

/** A workflow's version and pinning, from the server's description of the workflow. */
export function versioningOf(info: VersioningInfo): Pick<RunsOn, 'version' | 'pinned' | 'override'> {
  const override = info?.versioningOverride;
  const pinnedTo = namedVersion(override?.pinned?.version);
  return {
    version: namedVersion(info?.deploymentVersion),
    pinned: info?.behavior === VersioningBehavior.VERSIONING_BEHAVIOR_PINNED,
    override: pinnedTo !== null || override?.autoUpgrade === true ? { version: pinnedTo } : null,
  };
}

/** The version that a workflow is pinned to; `null` when it follows the current one, or has none. */
export function pinnedTo({
  version,
  pinned,
  override,
}: Pick<RunsOn, 'version' | 'pinned' | 'override'>): WorkerVersion | null {
  return override === null ? (pinned ? version : null) : override.version;
}

/**
 * Pins a running workflow to a version, whatever its own behavior says; `null` removes that.
 *
 * @throws Temporal's `WorkflowNotFoundError`, also when it is closed
 */
export async function overrideVersion(
  client: Client,
  workflowId: string,
  version: WorkerVersion | null,
): Promise<void> {
  const pinned = version && {
    behavior: PINNED_OVERRIDE_BEHAVIOR_PINNED,
    version: { deploymentName: version.deployment, buildId: version.buildId },
  };
  try {
    await client.workflowService.updateWorkflowExecutionOptions({
      namespace: client.options.namespace,
      workflowExecution: { workflowId },
      workflowExecutionOptions: pinned === null ? {} : { versioningOverride: { pinned } },
      updateMask: { paths: ['versioning_override'] },
      identity: client.options.identity,
    });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw new WorkflowNotFoundError((error as Error).message, workflowId, undefined);
  }
}

/** How the server refuses to make a version current. */
const REFUSED: ReadonlySet<number> = new Set([GRPC.notFound, GRPC.failedPrecondition, GRPC.invalidArgument]);

/**
 * Makes a version current: new sessions, and sessions that are not pinned, run on it.
 *
 * @throws PerdureError `INVALID_ARGUMENT` when the server has no such version, or refuses it; `SERVER_UNAVAILABLE`
 */
export async function setCurrentVersion(
  client: Client,
  { deployment, buildId }: WorkerVersion,
): Promise<void> {
  const { namespace, identity } = client.options;
  try {
    await client.workflowService.setWorkerDeploymentCurrentVersion({
      namespace,
      deploymentName: deployment,
      buildId,
      identity,
    });
  } catch (error) {
    const { code = 0, details = '' } = error as { code?: number; details?: string };
    if (!REFUSED.has(code)) throw readError(`the versions of ${deployment}`, error);
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `The server did not make ${buildId} of ${deployment} current: ${details}. Start a worker of that version first`,
      { details: { field: 'buildId' }, cause: error },
    );
  }
}
