/** In the sandbox: says where a thread is in its rollover, at the workflow tasks that take it a step further. */
import { proxySinks, type Sinks, type WorkflowInterceptors, workflowInfo } from '@temporalio/workflow';

/**
 * Where a thread is in its rollover:
 * - `sealing`: the task that starts the segment is done, and not reported.
 * - `going on`: the segment is there, and the task that continues as new is not reported.
 * - `begun`: the next run is there, and its first task is not reported.
 */
export type RolloverPlace = 'sealing' | 'going on' | 'begun';

export interface RolloverSinks extends Sinks {
  rollover: { at(place: RolloverPlace): void };
}

const { rollover } = proxySinks<RolloverSinks>();

export const interceptors = (): WorkflowInterceptors => ({
  inbound: [
    {
      execute: (input, next) => {
        const { workflowType, continuedFromExecutionRunId } = workflowInfo();
        if (workflowType === 'checkpointThread' && continuedFromExecutionRunId !== undefined)
          rollover.at('begun');
        return next(input);
      },
    },
  ],
  outbound: [
    {
      startChildWorkflowExecution: (input, next) => {
        rollover.at('sealing');
        return next(input);
      },
      continueAsNew: (input, next) => {
        rollover.at('going on');
        return next(input);
      },
    },
  ],
});
