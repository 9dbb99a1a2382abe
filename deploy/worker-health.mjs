// Whether a worker of this host polls its task queue: exit code 0 when it does, 1 with the reason when not.
// For the health check of a container, which has its own host name.
import { hostname } from 'node:os';
import { Client, Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';

const WORKFLOW = 1;
const ACTIVITY = 2;
/** The server answers each poll within a minute, so it has seen a live worker within this time. */
const SEEN_MS = 90_000;

const taskQueue = process.env.PERDURE_TASK_QUEUE || 'perdure';

/** @returns {Promise<string | null>} the reason, or `null` when a worker polls */
async function unhealthy() {
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
  const connection = await Connection.connect({ ...connectionOptions, connectTimeout: 5_000 });
  try {
    const { workflowService } = new Client({ connection, namespace }).connection;
    for (const taskQueueType of [WORKFLOW, ACTIVITY]) {
      const { pollers } = await workflowService.describeTaskQueue({
        namespace,
        taskQueue: { name: taskQueue },
        taskQueueType,
      });
      const ours = (pollers ?? []).filter(({ identity }) => identity?.includes(hostname()));
      const seen = Math.max(
        0,
        ...ours.map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000),
      );
      if (Date.now() - seen < SEEN_MS) return null;
    }
    return `no worker of ${hostname()} polls task queue ${taskQueue}`;
  } finally {
    await connection.close();
  }
}

const reason = await unhealthy().catch((/** @type {unknown} */ error) => String(error));
if (reason !== null) {
  process.stderr.write(`${reason}\n`);
  process.exitCode = 1;
}
