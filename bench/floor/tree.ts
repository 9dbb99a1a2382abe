/** The floor of a tree of agents: a workflow that starts children, each of which asks the model twice. */
import { executeChild, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { FloorActivities, FloorMessage } from './activities.ts';

const { model } = proxyActivities<FloorActivities>({
  startToCloseTimeout: '15m',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '60s', maximumAttempts: 5 },
});

/** Asks the model, then asks it again with the result of a call. */
export async function leaf(task: string): Promise<string> {
  const { text, calls } = await model({ turn: 1, messages: [{ role: 'user', content: task }] });
  const messages: FloorMessage[] = calls.map(({ id, name }) => ({
    role: 'tool',
    callId: id,
    name,
    content: text,
  }));
  return (await model({ turn: 2, messages })).text;
}

/** Asks the model, runs the children, at most `atOnce` at a time, and asks the model again. */
export async function tree({ children, atOnce }: { children: number; atOnce: number }): Promise<string> {
  const { workflowId } = workflowInfo();
  await model({ turn: 1, messages: [{ role: 'user', content: 'Begin.' }] });
  const messages: FloorMessage[] = [];
  let begun = 0;
  const work = async (): Promise<void> => {
    while (begun < children) {
      const n = begun++;
      const content = await executeChild(leaf, { workflowId: `${workflowId}/${n}`, args: [`task ${n}`] });
      messages.push({ role: 'tool', callId: String(n), name: 'leaf', content });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return (await model({ turn: 2, messages })).text;
}
