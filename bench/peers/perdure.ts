/** Perdure itself; the variant is the kind of its tool. */
import { Client, Connection } from '@temporalio/client';
import * as z from 'zod';
import { createWorker, defineAgent, defineTool, Sessions } from '../../src/index.ts';
import { instantModel } from '../support/instant-model.ts';
import { type BenchTool, jobText, toolText } from '../support/job.ts';
import { quietRuntime } from '../support/quiet.ts';
import { serve, turnsOf } from './serve.ts';

const inputSchema = z.object({ ref: z.string() });

await serve(async (work, { temporal = '', taskQueue = '', variant = 'mutate', dir }) => {
  quietRuntime();
  const tool = variant as BenchTool;
  const agent = defineAgent({
    name: 'bench',
    model: instantModel(({ id }, turn) => void work.model(id, turn)),
    instructions: 'You are measured.',
    tools: {
      mutate: defineTool({
        description: 'Changes the world',
        inputSchema,
        effect: 'mutate',
        // The effect is in this process and ends with it, so a lost call cannot land later.
        settle: 0,
        execute: ({ ref }) => work.tool(ref),
        verify: ({ ref }) =>
          work.happened(ref) ? { outcome: 'landed', output: toolText(ref) } : { outcome: 'absent' },
      }),
      read: defineTool({
        description: 'Looks',
        inputSchema,
        effect: 'read',
        execute: ({ ref }) => work.tool(ref),
      }),
    },
  });
  const client = new Client({ connection: await Connection.connect({ address: temporal }) });
  const sessions = new Sessions(client, { taskQueue });
  const worker = await createWorker({ agents: [agent], address: temporal, taskQueue, journal: dir });
  worker.run().catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
  return {
    run: async (id) => {
      const message = jobText({ id, turns: turnsOf(id), tool });
      await (await sessions.start('bench', { id, message, mode: 'task' })).result();
    },
    resume: (id) => sessions.get(id).result(),
  };
});
