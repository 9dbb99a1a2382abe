/** Agents of the CLI's tests, served by a real `perdure worker`. Their model is the one that the environment names. */
import { agentTool, askPerson, type DefinedAgent, defineAgent, defineTool, sleepUntil } from 'perdure';
import * as z from 'zod';

const model = 'env:scripted';

/** A refund that may need approval, and reports that it cannot tell what became of it when it is told to be lost. */
const refund = defineTool({
  description: 'Refund a charge',
  inputSchema: z.object({ chargeId: z.string(), cents: z.number().int().positive() }),
  needsApproval: ({ cents }) => cents > 5_000,
  settle: '1ms',
  maxAttempts: 2,
  execute: ({ chargeId, cents }) => {
    if (chargeId === 'lost') throw new Error('the connection was lost');
    return { refunded: cents };
  },
  compensate: { execute: ({ cents }) => ({ charged: cents }), verify: () => ({ outcome: 'absent' }) },
});

const order = defineTool({
  description: 'Look up an order',
  inputSchema: z.object({ id: z.string() }),
  effect: 'read',
  execute: ({ id }) => ({ id, cents: 9_000 }),
});

export const support: DefinedAgent = defineAgent({
  name: 'support',
  model: { model, price: { inputPerMillion: 1, outputPerMillion: 2 } },
  instructions: 'Help with refunds.',
  tools: { refund, order },
  plan: true,
});

/** It asks people: two who approve, and one who answers. */
export const desk: DefinedAgent = defineAgent({
  name: 'desk',
  model,
  instructions: 'Pay invoices.',
  tools: {
    pay: defineTool({
      description: 'Pay an invoice',
      inputSchema: z.object({ invoice: z.string() }),
      needsApproval: true,
      approval: { people: 2, byAnother: true },
      execute: ({ invoice }) => ({ paid: invoice }),
    }),
    release: defineTool({
      description: 'Release a payment that expires',
      inputSchema: z.object({ payment: z.string() }),
      needsApproval: true,
      approval: { expires: '1h' },
      execute: ({ payment }) => ({ released: payment }),
    }),
    announce: defineTool({
      description: 'Announce a text once, for all sessions',
      inputSchema: z.object({ text: z.string() }),
      idempotency: { scope: 'global', ttl: '1h' },
      settle: '1ms',
      execute: () => {
        throw new Error('the connection was lost');
      },
    }),
    sleep_until: sleepUntil(),
    ask_person: askPerson({ otherwise: 'any' }),
    ask_trip: askPerson({ answer: z.object({ seat: z.enum(['window', 'aisle']), nights: z.int() }) }),
  },
});

/** It hands work to another agent. */
export const lead: DefinedAgent = defineAgent({
  name: 'lead',
  model,
  instructions: 'Delegate.',
  tools: { support: agentTool(support), later: agentTool(support, { background: true }) },
});

export const echo: DefinedAgent = defineAgent({ name: 'echo', model, instructions: 'Repeat what is said.' });

/** Its sessions go on in a new run after two turns. */
export const brief: DefinedAgent = defineAgent({
  name: 'brief',
  model,
  instructions: 'Repeat what is said.',
  runTurns: 2,
});
