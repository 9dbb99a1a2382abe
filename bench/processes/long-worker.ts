/**
 * A worker of three agents: `bench`, with its defaults; `whole`, whose sessions stay in one run; and `endless`, without
 * summaries.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { createWorker, defineAgent, defineTool } from '../../src/index.ts';
import { instantModel, type OnRequest } from '../support/instant-model.ts';
import { toolText } from '../support/job.ts';
import { say } from '../support/processes.ts';
import { PromptCache } from '../support/prompt-cache.ts';
import { quietRuntime } from '../support/quiet.ts';

/** A run of fifty turns then takes longer than a second. The server delays the end of a shorter run. */
const TOOL_MS = 10;

const [address = '', taskQueue = '', journal = '', tokens = ''] = process.argv.slice(2);
quietRuntime();
const onRequest: OnRequest = ({ id }, turn, counted) =>
  say({
    event: 'model',
    of: id,
    turn,
    ...(counted && { tokens: counted.tokens, cachedTokens: counted.cached }),
  });
const options = {
  contextWindow: { tokens: Number(tokens) },
  model: instantModel(onRequest, new PromptCache()),
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
  defineAgent({ ...options, name: 'endless', model: instantModel(onRequest), contextWindow: false }),
];
const worker = await createWorker({ agents, address, taskQueue, journal });
process.on('message', (question) => {
  globalThis.gc?.();
  setTimeout(() => say({ event: 'memory', turn: Number(question), rss: process.memoryUsage().rss }), 500);
});
const running = worker.run();
say({ event: 'ready' });
await running;
