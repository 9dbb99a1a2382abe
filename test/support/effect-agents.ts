/** The agents of the effect tests: the module that worker processes load, over the payments service. */
import * as z from 'zod';
import { createPaymentsClient, PaymentsError } from '../../examples/payments/client.ts';
import type { Refund } from '../../examples/payments/protocol.ts';
import {
  type DefinedAgent,
  type DefinedTool,
  defineAgent,
  defineTool,
  NotAttemptedError,
  type SessionWorkerOptions,
  type ToolContext,
  type ToolOptions,
} from '../../src/index.ts';
import { breakpoint } from '../../src/testing/index.ts';

interface RefundArgs {
  chargeId: string;
  cents: number;
  reason: string;
}

const refundArgs = z.object({
  chargeId: z.string(),
  cents: z.number().int().positive(),
  reason: z.string().default('broken'),
}) as z.ZodType<RefundArgs>;

// Read at each call: a test may start the service after this module was loaded.
const payments = (): ReturnType<typeof createPaymentsClient> =>
  createPaymentsClient(process.env['PAYMENTS_URL'] ?? '');

/** Reports requests that certainly did nothing. Only a request that was never sent is worth another try. */
async function attempt<T>(request: Promise<T>): Promise<T> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof PaymentsError && error.notDone) {
      throw new NotAttemptedError(error.message, { retryable: error.code === 'NOT_SENT', cause: error });
    }
    throw error;
  }
}

async function execute(input: RefundArgs, context: ToolContext): Promise<Refund> {
  await breakpoint('request');
  try {
    return await attempt(payments().refund(input, context.idempotencyKey, context.abortSignal));
  } catch (error) {
    await breakpoint('no reply');
    throw error;
  }
}

function refundTool(options: Partial<ToolOptions<RefundArgs, Refund>> = {}): DefinedTool<RefundArgs, Refund> {
  return defineTool({
    description: 'Refund a charge',
    inputSchema: refundArgs,
    timeout: '20s',
    settle: '100ms',
    execute,
    ...options,
  });
}

const verify = async (_: RefundArgs, { idempotencyKey, abortSignal }: ToolContext) =>
  payments().find(idempotencyKey, abortSignal);

const tools = {
  /** A mutation that can be verified. */
  refund: refundTool({ verify }),
  /** A mutation that cannot. */
  refundBlind: refundTool(),
  /** One for all sessions. */
  refundGlobally: refundTool({ verify, settle: '2s', idempotency: { scope: 'global', ttl: '1h' } }),
  /** Gives up long before the service does. A late effect lands within the settle time. */
  refundTimed: refundTool({ verify, timeout: '300ms', settle: '5s' }),
  /** For workers that die at any moment. A request that is under way then lands within the settle time. */
  refundPatient: refundTool({ verify, settle: '2s' }),
  /** Neither it nor its verify ever answers. */
  refundSilent: refundTool({
    timeout: '300ms',
    execute: () => new Promise(() => {}),
    verify: () => new Promise(() => {}),
  }),
  /** Asks the fence just before its request, and then ignores the abort signal. */
  refundFenced: refundTool({
    verify,
    execute: async (input, { fence, idempotencyKey }) => {
      await breakpoint('fence');
      try {
        await fence();
      } catch (error) {
        await breakpoint('fenced', String((error as { code?: unknown }).code));
        throw error;
      }
      return payments().refund(input, idempotencyKey);
    },
  }),
  /** A careless mutation: no fence, no signal. Only the service's own keys protect it. */
  refundCareless: refundTool({
    verify,
    execute: async (input, { idempotencyKey }) => {
      await breakpoint('request');
      const refund = await payments().refund(input, idempotencyKey);
      await breakpoint('refunded');
      return refund;
    },
  }),
  /** One attempt: the outcome depends on what counts as an attempt. */
  refundOnce: refundTool({ verify, maxAttempts: 1 }),
  refundEachTime: refundTool({ verify, idempotency: { scope: 'call' } }),
  refundByCharge: refundTool({ verify, idempotency: { args: ['chargeId', 'cents'] } }),
  refundByOrder: refundTool({ verify, idempotency: ({ chargeId }) => chargeId.replace('ch_', 'order ') }),
  refundAsked: refundTool({ verify, needsApproval: true }),
  refundByTwo: refundTool({ verify, needsApproval: true, approval: { people: 2 } }),
  refundExpiring: refundTool({ verify, needsApproval: true, approval: { expires: '200ms' } }),
  refundConsented: refundTool({
    verify,
    needsApproval: () => true,
    approval: { expires: '200ms', onExpiry: 'approve' },
  }),
  /** Safe to repeat: the service knows the key. */
  note: refundTool({ effect: 'idempotent' }),
  /** An e-mail to the customer takes it back. */
  refundUndone: refundTool({
    verify,
    compensate: {
      execute: async ({ chargeId }, { id }, { idempotencyKey, abortSignal, fence }) => {
        await breakpoint('compensation');
        await fence();
        const mail = { to: 'customer@example.com', subject: `not refunded: ${chargeId}`, body: id };
        const sent = await attempt(payments().sendEmail(mail, idempotencyKey, abortSignal));
        await breakpoint('compensated');
        return sent;
      },
      verify: (_, __, { idempotencyKey }) => payments().findEmail(idempotencyKey),
    },
  }),
  email: defineTool({
    description: 'Send an e-mail',
    inputSchema: z.object({ to: z.string(), subject: z.string(), body: z.string() }),
    settle: '100ms',
    idempotency: { scope: 'session' },
    execute: async (input, { idempotencyKey, abortSignal }) => {
      await breakpoint('request');
      return attempt(payments().sendEmail(input, idempotencyKey, abortSignal));
    },
    verify: (_, { idempotencyKey }) => payments().findEmail(idempotencyKey),
  }),
  order: defineTool({
    description: 'Look an order up',
    inputSchema: z.object({ id: z.string() }),
    effect: 'read',
    execute: async ({ id }, { abortSignal, attempt: no }) => {
      await breakpoint('request');
      return { ...(await payments().order(id, abortSignal)), attempt: no };
    },
  }),
  peek: defineTool({
    description: 'Look at nothing but the arguments',
    inputSchema: z.object({ id: z.string() }),
    effect: 'read',
    execute: async ({ id }) => {
      await breakpoint('peek');
      return id;
    },
  }),
};

/** Workflow code in the process's own thread: another one costs each worker process a sixth of its start. */
export const workerOptions: Partial<SessionWorkerOptions> = { debugMode: true };

const common = { model: 'scripted', instructions: 'Help with refunds.', tools, heartbeat: '1s' } as const;

/** As `effects`, at a price. */
export const priced: DefinedAgent = defineAgent({
  ...common,
  name: 'priced',
  model: { model: 'scripted', price: { inputPerMillion: 1, outputPerMillion: 2 } },
  budget: { usd: 10 },
});
export const effects: DefinedAgent = defineAgent({ ...common, name: 'effects' });
export const parallel: DefinedAgent = defineAgent({ ...common, name: 'parallel', toolOrder: 'parallel' });
/** Its sessions continue in a new run after each turn, even while they wait. */
export const rolling: DefinedAgent = defineAgent({ ...common, name: 'rolling', runTurns: 1 });
/** Its calls may go without a heartbeat for an hour: only a successor's report can end them sooner. */
export const silent: DefinedAgent = defineAgent({ ...common, name: 'silent', heartbeat: '1h' });
/** As `silent`, but can be held before its reads begin, when earlier results are in its heartbeats already. */
export const slowToBegin: DefinedAgent = defineAgent({
  ...common,
  name: 'slowToBegin',
  heartbeat: '1h',
  instructions: async () => {
    await breakpoint('instructions');
    return 'Help with refunds.';
  },
});
