/** Workflow interceptors of a user's own: each workflow says that they ran. */
import { upsertMemo, type WorkflowInterceptors } from '@temporalio/workflow';

export const interceptors = (): WorkflowInterceptors => ({
  inbound: [
    {
      execute: (input, next) => {
        upsertMemo({ intercepted: true });
        return next(input);
      },
    },
  ],
});
