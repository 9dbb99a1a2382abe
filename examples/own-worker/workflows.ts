import { executeChild, workflowInfo } from '@temporalio/workflow';
import { agentSession } from 'perdure/workflows';

/** Runs one session as a step of a workflow of your own. Resolves with the agent's last answer. */
export async function handleTicket(ticketId: string, text: string): Promise<string> {
  const { text: answer } = await executeChild(agentSession, {
    workflowId: `ticket-${ticketId}`,
    taskQueue: workflowInfo().taskQueue,
    // A short time-out, so that Temporal soon notices a worker's death.
    workflowTaskTimeout: '2s',
    // `task`: the session ends with its answer. A session of mode `chat` waits for the next message.
    args: [{ agent: 'clerk', mode: 'task', message: { text } }],
  });
  return answer;
}
