/** The floor: an agent loop as a sensible user of Temporal writes it, with two remote activities a turn. */
import { condition, defineQuery, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';
import type { FloorActivities, FloorMessage } from './activities.ts';

export { heard } from './heard.ts';
export { store } from './store.ts';
export { leaf, tree } from './tree.ts';

const { model } = proxyActivities<FloorActivities>({
  startToCloseTimeout: '15m',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '60s', maximumAttempts: 5 },
});
const { tool } = proxyActivities<FloorActivities>({
  startToCloseTimeout: '1m',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', maximumAttempts: 3 },
});

type Much = { role: string; blocks: { kind: string; text: string }[] }[];

/** An answer of about this many bytes that looks like a transcript: a list of messages of 1 KB. */
function muchOf(bytes: number): Much {
  const text = 'x'.repeat(1_000);
  const length = Math.round(bytes / (text.length + 60));
  return Array.from({ length }, () => ({ role: 'assistant', blocks: [{ kind: 'text', text }] }));
}

/** Runs turns until the model asks for nothing more; with `hold`, stays open until it gets the signal `release`. */
export async function floor(input: { text: string; hold?: boolean }): Promise<string> {
  let turn = 0;
  let held = input.hold === true;
  setHandler(defineQuery('state'), () => ({ turn, held }));
  setHandler(defineQuery<Much, [number]>('much'), muchOf);
  setHandler(defineSignal('release'), () => {
    held = false;
  });
  let messages: FloorMessage[] = [{ role: 'user', content: input.text }];
  for (;;) {
    turn += 1;
    const reply = await model.executeWithOptions({ summary: `turn ${turn}` }, [{ turn, messages }]);
    if (reply.calls.length === 0) {
      await condition(() => !held);
      return reply.text;
    }
    messages = [];
    for (const { id, name, args } of reply.calls) {
      const content = await tool.executeWithOptions({ summary: `${name} ${id}` }, [
        { callId: id, name, args },
      ]);
      messages.push({ role: 'tool', callId: id, name, content });
    }
  }
}
