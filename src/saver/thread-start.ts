import type { WorkflowStartOptions } from '@temporalio/client';
import { THREAD_MEMO, type ThreadInput, threadWorkflowId } from '../contract/thread.ts';

/** The workflow of a thread. */
export type ThreadWorkflow = (input: ThreadInput) => Promise<void>;

type ThreadStart = WorkflowStartOptions<ThreadWorkflow> & { workflowIdConflictPolicy: 'USE_EXISTING' };

/** The start options of a thread's workflow. Its epoch is in the memo, which can be read without a worker. */
export function threadStart(input: ThreadInput, taskQueue: string): ThreadStart {
  const { threadId, epoch } = input;
  return {
    workflowId: threadWorkflowId(threadId),
    taskQueue,
    args: [input],
    // When a worker dies, the next one gets its task after this time instead of ten seconds.
    workflowTaskTimeout: '5s',
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    memo: { [THREAD_MEMO]: epoch },
    staticSummary: `checkpoints of ${threadId}`.slice(0, 200),
  };
}
