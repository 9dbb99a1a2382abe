import type { PoolInput } from '../contract/pool.ts';
import { poolWorkflowId } from '../contract/workflow-ids.ts';

export type PoolWorkflow = (input: PoolInput) => Promise<void>;

/** How the workflow of a pool is started, unless it runs. */
export function poolStart(
  poolId: string,
  taskQueue: string,
): {
  workflowId: string;
  taskQueue: string;
  workflowIdConflictPolicy: 'USE_EXISTING';
  workflowTaskTimeout: '2s';
  staticSummary: string;
  args: [PoolInput];
} {
  return {
    workflowId: poolWorkflowId(poolId),
    taskQueue,
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowTaskTimeout: '2s',
    staticSummary: `pool ${poolId}`,
    args: [{ poolId }],
  };
}
