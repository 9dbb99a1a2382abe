import { type Client, WithStartWorkflowOperation } from '@temporalio/client';
import { TASK_TIMEOUT } from '../contract/limits.ts';
import { WORKFLOW } from '../contract/names.ts';
import type { PoolInput } from '../contract/pool.ts';
import { poolWorkflowId } from '../contract/workflow-ids.ts';

/** Updates in one run of a pool: few enough that a replay of the run takes less than {@link TASK_TIMEOUT}. */
const RUN_UPDATES = 100;

/** Sends an update to a pool, and makes the pool if there is none. */
export function updatePool<T>(
  client: Client,
  { pool, taskQueue, name, input }: { pool: string; taskQueue: string; name: string; input: object },
): Promise<T> {
  type PoolWorkflow = (input: PoolInput) => Promise<void>;
  const startWorkflowOperation = new WithStartWorkflowOperation<PoolWorkflow>(WORKFLOW.pool, {
    workflowId: poolWorkflowId(pool),
    taskQueue,
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowTaskTimeout: TASK_TIMEOUT,
    staticSummary: `pool ${pool}`,
    args: [{ poolId: pool, runUpdates: RUN_UPDATES }],
  });
  return client.workflow.executeUpdateWithStart<PoolWorkflow, T, [object]>(name, {
    args: [input],
    startWorkflowOperation,
  });
}
