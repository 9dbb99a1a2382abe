/** An agent whose tool has the effect that the environment names: two worker processes may differ. */
import * as z from 'zod';
import { createPaymentsClient } from '../../examples/payments/client.ts';
import type { RefundInput } from '../../examples/payments/protocol.ts';
import { type DefinedAgent, defineAgent, defineTool } from '../../src/index.ts';
import { breakpoint } from '../../src/testing/index.ts';

const payments = (): ReturnType<typeof createPaymentsClient> =>
  createPaymentsClient(process.env['PAYMENTS_URL'] ?? '');

const effect = process.env['REFUND_EFFECT'] as 'mutate' | 'idempotent' | 'read';

const refund = defineTool({
  description: 'Refund a charge',
  inputSchema: z.object({ chargeId: z.string(), cents: z.number(), reason: z.string() }),
  execute: async (input: RefundInput, { idempotencyKey }) => {
    const refund = await payments().refund(input, idempotencyKey);
    await breakpoint('refunded');
    return refund;
  },
  ...(effect === 'mutate'
    ? { effect, settle: '100ms', verify: (_, { idempotencyKey }) => payments().find(idempotencyKey) }
    : { effect }),
});

export const corrected: DefinedAgent = defineAgent({
  name: 'corrected',
  model: 'scripted',
  instructions: 'Help with refunds.',
  tools: { refund },
  heartbeat: '1s',
});
