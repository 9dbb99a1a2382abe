import type { WorkflowStartOptions } from '@temporalio/client';
import { THREAD_MEMO, type ThreadInput, threadWorkflowId } from '../contract/thread.ts';

/** The workflow of a thread. */
export type ThreadWorkflow = (input: ThreadInput) => Promise<void>;

type ThreadStart = WorkflowStartOptions<ThreadWorkflow> & { workflowIdConflictPolicy: 'USE_EXISTING' };

/** How the workflow of a thread is started, by whoever is first: how often it was deleted shows without a worker. */
export function threadStart(input: ThreadInput, taskQueue: string): ThreadStart {
  const { threadId, epoch } = input;
  return {
    workflowId: threadWorkflowId(threadId),
    taskQueue,
    args: [input],
    // What a worker takes when it dies goes to the next one after this time; stock are ten seconds.
    workflowTaskTimeout: '5s',
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    memo: { [THREAD_MEMO]: epoch },
    staticSummary: `checkpoints of ${threadId}`.slice(0, 200),
  };
}
