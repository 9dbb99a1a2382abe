/** The measured agent: one tool of each kind. All tools do the same. */
import * as z from 'zod';
import { type DefinedAgent, defineAgent, defineTool } from '../../src/index.ts';
import { instantModel, type OnRequest } from './instant-model.ts';
import { toolText } from './job.ts';

const inputSchema = z.object({ ref: z.string() });

/** Makes the agent `bench`. */
export function benchAgent(onRequest?: OnRequest): DefinedAgent {
  return defineAgent({
    name: 'bench',
    model: instantModel(onRequest),
    instructions: 'You are measured.',
    // The history of one run is measured. `long` measures sessions over many runs.
    runTurns: false,
    tools: {
      mutate: defineTool({
        description: 'Changes the world',
        inputSchema,
        effect: 'mutate',
        execute: ({ ref }) => toolText(ref),
        verify: () => ({ outcome: 'absent' }),
      }),
      read: defineTool({
        description: 'Looks',
        inputSchema,
        effect: 'read',
        execute: ({ ref }) => toolText(ref),
      }),
    },
  });
}
