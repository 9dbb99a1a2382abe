import { type DefinedAgent, defineAgent, defineTool, NotAttemptedError, type Verification } from 'perdure';
import { z } from 'zod';

// #region context
/** The customer of a session. Whoever starts the session sets it; the model cannot change it. */
const Customer = z.object({
  tenant: z.string(),
  email: z.string(),
  language: z.enum(['English', 'German']).default('English'),
  refundLimit: z.number().default(5_000),
});
type Customer = z.infer<typeof Customer>;

const refund = defineTool({
  description: 'Refund some of an order, in cents',
  context: Customer,
  inputSchema: z.object({ order: z.string(), cents: z.int().positive() }),
  needsApproval: ({ cents }, { context }) => cents > context.refundLimit,
  execute: async (input, { context, idempotencyKey, abortSignal }) => {
    await ownOrder(context, input.order, abortSignal);
    return post(context, 'refunds', input, { idempotencyKey, abortSignal });
  },
  verify: (_, { context, idempotencyKey }) => find(context, 'refunds', idempotencyKey),
});
// #endregion

const lookUpOrder = defineTool({
  description: 'Look up an order of the customer',
  context: Customer,
  inputSchema: z.object({ order: z.string() }),
  effect: 'read',
  execute: ({ order }, { context, abortSignal }) => ownOrder(context, order, abortSignal),
});

/** No scope is named, so equal mails in answer to one message are one mail, and a later message may ask for it again. */
const sendMail = defineTool({
  description: 'Send the customer a mail',
  context: Customer,
  inputSchema: z.object({ subject: z.string(), text: z.string() }),
  settle: '1s',
  execute: (input, { context, idempotencyKey, abortSignal }) =>
    post(context, 'mails', { to: context.email, ...input }, { idempotencyKey, abortSignal }),
  verify: (_, { context, idempotencyKey }) => find(context, 'mails', idempotencyKey),
});

// #region agent
export const desk: DefinedAgent = defineAgent({
  name: 'desk',
  model: `openai:${process.env['OPENAI_MODEL'] ?? 'gpt-5-mini'}`,
  context: Customer,
  instructions: ({ context }) => `Help ${context.email} with their orders. Answer in ${context.language}.`,
  tools: { lookUpOrder, refund, sendMail },
  heartbeat: '2s',
});
// #endregion

/** An address of the customer's shop. No tool can reach another tenant's. */
function at({ tenant }: Customer, path: string): string {
  return `${process.env['SHOP_URL']}/${encodeURIComponent(tenant)}/${path}`;
}

/** An order, if it is the customer's own. It is read each time: the shop changes it. */
async function ownOrder(context: Customer, id: string, signal: AbortSignal): Promise<object> {
  const answer = await fetch(at(context, `orders/${encodeURIComponent(id)}`), { signal });
  const order = (await answer.json()) as { customer?: string };
  if (!answer.ok || order.customer !== context.email) {
    // Certain, and no use to try again: nothing was refunded.
    throw new NotAttemptedError(`${context.email} has no order ${id}`, { retryable: false });
  }
  return order;
}

async function post(
  context: Customer,
  kind: 'refunds' | 'mails',
  input: object,
  { idempotencyKey, abortSignal }: { idempotencyKey: string; abortSignal: AbortSignal },
): Promise<{ id: string }> {
  const answer = await fetch(at(context, kind), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey },
    body: JSON.stringify(input),
    signal: abortSignal,
  });
  if (!answer.ok) throw new Error(`the shop answered ${answer.status}`);
  return (await answer.json()) as { id: string };
}

/** Whether the shop has what was sent with a key. */
async function find(
  context: Customer,
  kind: 'refunds' | 'mails',
  key: string,
): Promise<Verification<{ id: string }>> {
  const answer = await fetch(at(context, `${kind}?key=${key}`));
  const [row] = (await answer.json()) as { id: string }[];
  return row === undefined ? { outcome: 'absent' } : { outcome: 'landed', output: { id: row.id } };
}
