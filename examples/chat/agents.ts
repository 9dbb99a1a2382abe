/** The agent of the chat: it looks up orders, and refunds them when a person approves. */
import { appendFile, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type DefinedAgent, defineAgent, defineTool } from 'perdure';
import { z } from 'zod';

// All workers use the same file: `verify` must look where `execute` wrote.
const FILE = process.env['REFUNDS_FILE'] ?? fileURLToPath(new URL('refunds.jsonl', import.meta.url));

const findOrder = defineTool({
  description: 'Look up an order by its number',
  inputSchema: z.object({ order: z.string() }),
  effect: 'read',
  execute: ({ order }) => ({ order, item: 'Teapot, blue', cents: 4_900, status: 'delivered' }),
});

const refund = defineTool({
  description: 'Refund an order',
  inputSchema: z.object({ order: z.string(), cents: z.number().int().positive() }),
  effect: 'mutate',
  needsApproval: true,
  execute: async (input, { idempotencyKey }) => {
    await appendFile(FILE, `${JSON.stringify({ key: idempotencyKey, ...input })}\n`);
    return { refunded: input.cents };
  },
  verify: async ({ cents }, { idempotencyKey }) => {
    const refunds = await readFile(FILE, { encoding: 'utf8', flag: 'a+' });
    return refunds.includes(idempotencyKey)
      ? { outcome: 'landed', output: { refunded: cents } }
      : { outcome: 'absent' };
  },
});

export const shop: DefinedAgent = defineAgent({
  name: 'shop',
  model: `openai:${process.env['OPENAI_MODEL'] ?? 'gpt-5-mini'}`,
  instructions: 'You help the customers of a shop for teapots. Look an order up before you refund it.',
  tools: { findOrder, refund },
});
