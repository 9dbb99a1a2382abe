/** How many polls a worker makes. */
import type { NativeConnection, WorkerOptions } from '@temporalio/worker';

/** Temporal's default number of partitions of a task queue. */
export const USUAL_PARTITIONS = 4;

/** Polls of the sticky queue. A task without a waiting poll goes through the queue's store, which is slower. */
const STICKY_POLLS = 8;

/** The options for this many polls of the common queue, and for the polls of the sticky queue. */
export function workflowPollers(common: number): Partial<WorkerOptions> {
  const maximum = common + STICKY_POLLS;
  return {
    workflowTaskPollerBehavior: { type: 'simple-maximum', maximum },
    // The SDK rounds down what the ratio leaves to the common queue.
    nonStickyToStickyPollRatio: (common + 0.5) / maximum,
  };
}

/** A poll for each partition at rest, and more under load. */
export function pollers(atRest: number): {
  type: 'autoscaling';
  minimum: number;
  initial: number;
  maximum: number;
} {
  return { type: 'autoscaling', minimum: atRest, initial: atRest, maximum: Math.max(10, 2 * atRest) };
}

/** The partitions of a task queue, or Temporal's default. */
export async function partitionsOf(
  connection: NativeConnection,
  namespace: string,
  taskQueue: string,
): Promise<number> {
  try {
    const { activityTaskQueuePartitions: found } = await connection.workflowService.listTaskQueuePartitions({
      namespace,
      taskQueue: { name: taskQueue },
    });
    return found?.length || USUAL_PARTITIONS;
  } catch {
    return USUAL_PARTITIONS;
  }
}
