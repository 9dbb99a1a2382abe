/** The workflows of a newer version, whose sessions carry a state that this version does not know into a new run. */
import { condition, continueAsNew, defineSignal, setHandler } from '@temporalio/workflow';

interface Input {
  agent: string;
  carried?: { schema: number };
}

/** Goes on in a new run at once, and ends there with the first signal. */
export async function agentSession({ agent, carried }: Input): Promise<{ text: string }> {
  let isOver = false;
  setHandler(defineSignal('send'), () => {
    isOver = true;
  });
  if (carried === undefined) return continueAsNew<typeof agentSession>({ agent, carried: { schema: 2 } });
  await condition(() => isOver);
  return { text: `schema ${carried.schema}` };
}
