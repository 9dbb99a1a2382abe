/** The support agent: it looks up orders and refunds charges. A large refund waits for a person. */
import { type DefinedAgent, defineAgent, defineTool, NotAttemptedError } from 'perdure';
import { z } from 'zod';
import { createPaymentsClient, PaymentsError } from '../payments/client.ts';

const payments = createPaymentsClient(process.env['PAYMENTS_URL'] ?? 'http://127.0.0.1:4010');

/** Refunds above this wait for a person. */
const APPROVAL_ABOVE_CENTS = 5_000;

const order = defineTool({
  description:
    'Look up an order by its number: who bought what for how many cents, and the charge that paid for it',
  inputSchema: z.object({ id: z.string().describe('The number of the order') }),
  effect: 'read',
  execute: ({ id }, { abortSignal }) => payments.order(id, abortSignal),
});

/** A refund takes three or four replies, which may cost money. These caps stop a session that goes on and on. */
export const BUDGET = { turns: 8, tokens: 40_000 };

// #region refund
const refund = defineTool({
  description: 'Refund a charge, wholly or in part',
  inputSchema: z.object({
    chargeId: z.string(),
    cents: z.number().int().positive(),
    reason: z.string(),
  }),
  effect: 'mutate',
  // The same cents of the same charge are one refund in a session, whatever reason the model gives.
  idempotency: { scope: 'session', args: ['chargeId', 'cents'] },
  needsApproval: ({ cents }) => cents > APPROVAL_ABOVE_CENTS,
  timeout: '10s',
  settle: '1s',
  execute: async (input, { idempotencyKey, abortSignal, fence }) => {
    await fence();
    try {
      return await payments.refund(input, idempotencyKey, abortSignal);
    } catch (error) {
      throw certainly(error);
    }
  },
  verify: (_input, { idempotencyKey, abortSignal }) => payments.find(idempotencyKey, abortSignal),
});

/** Marks errors after which certainly nothing has happened. `verify` decides about all other errors. */
function certainly(error: unknown): unknown {
  if (!(error instanceof PaymentsError) || !error.notDone) return error;
  return new NotAttemptedError(error.message, { retryable: error.code === 'NOT_SENT', cause: error });
}
// #endregion

/** The model comes from the environment: OPENAI_API_KEY, or OPENAI_BASE_URL for any endpoint of that protocol. */
export const support: DefinedAgent = defineAgent({
  name: 'support',
  model: `openai:${process.env['OPENAI_MODEL'] || 'gpt-5-mini'}`,
  instructions:
    'You are the support desk of a shop. Look up an order before you act on it. When a customer is entitled to a ' +
    'refund, refund the charge of the order yourself, once; do not ask the customer for confirmation. Then answer in one sentence.',
  tools: { order, refund },
  budget: BUDGET,
});
