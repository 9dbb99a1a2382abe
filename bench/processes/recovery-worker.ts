/** A worker whose mutating tool never returns the first time. It is killed or frozen there. */

import * as z from 'zod';
import { createWorker, defineAgent, defineTool } from '../../src/index.ts';
import { instantModel } from '../support/instant-model.ts';
import { toolText } from '../support/job.ts';
import { say } from '../support/processes.ts';
import { quietRuntime } from '../support/quiet.ts';

const [address = '', taskQueue = '', heartbeat = '', journal = ''] = process.argv.slice(2);
quietRuntime();
const mutate = defineTool({
  inputSchema: z.object({ ref: z.string() }),
  effect: 'mutate',
  // The provider accepts nothing once its caller is gone. A longer settle time would simply add to the result.
  settle: 0,
  execute: (): Promise<string> => {
    say({ event: 'in-tool' });
    return new Promise(() => {});
  },
  verify: ({ ref }) => ({ outcome: 'landed', output: toolText(ref) }),
});
const agent = defineAgent({
  name: 'bench',
  model: instantModel((_, turn) => say({ event: 'model', turn })),
  instructions: 'You are measured.',
  tools: { mutate },
  heartbeat: Number(heartbeat),
});
const worker = await createWorker({ agents: [agent], address, taskQueue, journal });
const running = worker.run();
say({ event: 'ready' });
await running;
