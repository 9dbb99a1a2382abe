/** The agent whose waiting sessions are weighed: some turns of reading, then a call that a person has to approve. */
import { type DefinedAgent, defineAgent, defineTool } from 'perdure';
import * as z from 'zod';

const KB = 'x'.repeat(1_000);

export const clerk: DefinedAgent = defineAgent({
  name: 'clerk',
  model: { model: 'scripted', price: { inputPerMillion: 1, outputPerMillion: 2 } },
  instructions: 'Read, then sign.',
  loopLimit: 1_000,
  tools: {
    look: defineTool({
      description: 'Reads a page',
      effect: 'read',
      inputSchema: z.object({ page: z.number() }),
      execute: ({ page }) => ({ page, text: KB }),
    }),
    sign: defineTool({
      description: 'Signs',
      effect: 'mutate',
      needsApproval: true,
      inputSchema: z.object({ name: z.string() }),
      execute: ({ name }) => ({ signed: name }),
    }),
  },
});
