/** What the bench reads of the server's metrics. */
import { expect, test } from 'vitest';
import { readActions } from '../../bench/support/counted.ts';

test('Actions are summed by type, of the namespace of the sessions only', () => {
  const metrics = `# TYPE action counter
action{action_type="command_ScheduleActivityTask",namespace="default",service_name="history"} 2
action{action_type="command_ScheduleActivityTask",namespace="default",service_name="frontend"} 1
action{action_type="grpc_StartWorkflowExecution",namespace="temporal_system",service_name="frontend"} 9
actions_other{action_type="no",namespace="default"} 4
action{action_type="grpc_QueryWorkflow",namespace="default",service_name="frontend"} 1e+1`;
  expect(readActions(metrics)).toEqual({ command_ScheduleActivityTask: 3, grpc_QueryWorkflow: 10 });
});
