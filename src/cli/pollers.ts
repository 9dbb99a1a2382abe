/** Who asks for the work of a task queue. */
import type { Client, Connection } from '@temporalio/client';

type TaskQueueService = Pick<Connection['workflowService'], 'describeTaskQueue'>;

/** A poll is answered after a minute at the latest, so a worker that lives was seen since. */
const SEEN_MS = 90_000;

const TYPES = { workflow: 1, activity: 2 } as const;

/** Identities of the workers that poll a task queue for workflows and for activities. */
export async function pollersOf(
  service: TaskQueueService,
  namespace: string,
  taskQueue: string,
): Promise<Record<keyof typeof TYPES, string[]>> {
  const read = async (taskQueueType: 1 | 2): Promise<string[]> => {
    const { pollers } = await service.describeTaskQueue({
      namespace,
      taskQueue: { name: taskQueue },
      taskQueueType,
    });
    return (pollers ?? [])
      .filter(({ lastAccessTime }) => Date.now() - Number(lastAccessTime?.seconds ?? 0) * 1_000 < SEEN_MS)
      .map(({ identity }) => identity ?? '');
  };
  const [workflow, activity] = await Promise.all([read(TYPES.workflow), read(TYPES.activity)]);
  return { workflow, activity };
}

/** Whether somebody would answer a query of a workflow of this task queue. */
export async function isPolled(client: Client, taskQueue: string): Promise<boolean> {
  const { workflow } = await pollersOf(client.workflowService, client.options.namespace, taskQueue);
  return workflow.length > 0;
}
