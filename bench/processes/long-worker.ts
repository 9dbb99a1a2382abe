/** A worker of two agents: `bench`, as it is by default, and `whole`, whose sessions stay in one run. */
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { createWorker, defineAgent, defineTool } from '../../src/index.ts';
import { instantModel } from '../support/instant-model.ts';
import { toolText } from '../support/job.ts';
import { say } from '../support/processes.ts';
import { quietRuntime } from '../support/quiet.ts';

/** A run of fifty turns then takes longer than a second. The server holds back the end of a shorter one. */
const TOOL_MS = 10;

const [address = '', taskQueue = '', journal = ''] = process.argv.slice(2);
quietRuntime();
const options = {
  model: instantModel(({ id }, turn) => say({ event: 'model', of: id, turn })),
  instructions: 'You are measured.',
  tools: {
    mutate: defineTool({
      inputSchema: z.object({ ref: z.string() }),
      settle: 0,
      execute: async ({ ref }) => {
        await sleep(TOOL_MS);
        return toolText(ref);
      },
      verify: () => ({ outcome: 'absent' }),
    }),
  },
};
const agents = [
  defineAgent({ ...options, name: 'bench' }),
  defineAgent({ ...options, name: 'whole', runTurns: false }),
];
const worker = await createWorker({ agents, address, taskQueue, journal });
process.on('message', (question) => {
  globalThis.gc?.();
  setTimeout(() => say({ event: 'memory', turn: Number(question), rss: process.memoryUsage().rss }), 500);
});
const running = worker.run();
say({ event: 'ready' });
await running;
