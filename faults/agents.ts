/**
 * The agents of the lab: the module that its worker processes load. One tool of each kind, over the payments service.
 */
import {
  agentTool,
  type DefinedAgent,
  type DefinedTool,
  DirectoryValues,
  defineAgent,
  defineTool,
  NotAttemptedError,
  type RateLimit,
  type SessionWorkerOptions,
  type ToolContext,
  type ToolOptions,
  type Verification,
} from 'perdure';
import { breakpoint } from 'perdure/testing';
import * as z from 'zod';
import { createPaymentsClient, PaymentsError } from '../examples/payments/client.ts';
import { stepClock } from './clock.ts';
import { codecs, interceptors } from './holds.ts';
import { enlarged } from './large.ts';
import type { AgentPlan } from './mcp/plan.ts';
import { ALSO_READ, DELEGATE, MODES, type Mode, PRICE, type Step, TOOL, type ToolKind } from './story.ts';

/** The arguments of a call in the lab: whose call it is, and how its tool must behave. */
interface Args {
  /** Names the effect in the ledger: session and turn. */
  tag: string;
  mode: Mode;
}

const service = createPaymentsClient(process.env['PAYMENTS_URL'] ?? '');
/** Simulates a request that is almost written when its worker is stopped: it ignores the abort signal. */
const reckless = process.env['LAB_RECKLESS'] === '1';
const deploy = process.env['LAB_DEPLOY'] ?? '1';
/** The next version of the agent takes one more argument, which the calls in flight do not have. */
const inputSchema = z.object({
  tag: z.string(),
  mode: z.enum(MODES),
  ...(deploy === '1' ? {} : { note: z.string().optional() }),
}) as z.ZodType<Args>;
const clock = { step: process.env['LAB_CLOCK_STEP'], file: process.env['LAB_CLOCK_FILE'] ?? '' };
/** Planted mistakes, to test that the lab finds them: a verify that always says that nothing happened, ... */
const lies = process.env['LAB_LYING_VERIFY'] === '1';
/** ... and a tool that is never repeated. */
const givesUp = process.env['LAB_GIVE_UP'] === '1';
const runTurns = process.env['LAB_RUN_TURNS'] ?? '';
/** What happens to the background sub-agent of a task when the task ends. */
const atEnd = process.env['LAB_AT_END'] === 'cancel' ? 'cancel' : 'wait';
/** The tools refuse: they certainly do nothing. */
const refuses = process.env['LAB_REFUSES'] === '1';

/** A value store with breakpoints before and after it stores, which fails as often as planned. */
class HeldValues extends DirectoryValues {
  #failures = Number(process.env['LAB_VALUES_FAIL'] ?? 0);

  override async put(...args: Parameters<DirectoryValues['put']>): Promise<void> {
    await breakpoint('storing');
    if (this.#failures-- > 0) throw new Error('planned: the store fails');
    await super.put(...args);
    await breakpoint('stored');
  }
}

/** Options of the lab's workers; read by the harness. */
export const workerOptions: Partial<SessionWorkerOptions> = {
  interceptors,
  ...(process.env['LAB_WORKFLOWS'] === undefined ? {} : { workflowsPath: process.env['LAB_WORKFLOWS'] }),
  ...(process.env['LAB_SLOTS'] === undefined
    ? {}
    : { maxConcurrentActivityTaskExecutions: Number(process.env['LAB_SLOTS']) }),
  ...(process.env['LAB_RATE'] === undefined
    ? {}
    : { rateLimits: { scripted: JSON.parse(process.env['LAB_RATE']) as RateLimit } }),
  ...(process.env['LAB_VALUES'] === undefined ? {} : { values: new HeldValues(process.env['LAB_VALUES']) }),
  // Each worker can be held while it decodes a workflow task.
  ...(codecs.length === 0 ? {} : { dataConverter: { payloadCodecs: codecs } }),
};
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

/** Runs a call through its steps. A worker can be held at each step, before and after the request to the service. */
async function steps(
  { kind, tool = TOOL[kind] }: { kind: ToolKind; tool?: string },
  { tag, mode }: Args,
  { fence, attempt: no }: ToolContext,
  request: () => Promise<unknown>,
): Promise<unknown> {
  if (givesUp && no > 1) throw new NotAttemptedError('planned: given up', { retryable: false });
  if (refuses) throw new NotAttemptedError('planned: refused', { retryable: false });
  const reach = async (step: Step, point: string): Promise<void> => {
    if (clock.step === step) stepClock(tag, clock.file);
    await breakpoint(`${point} ${tool}`, tag);
  };
  await reach('in-call', 'request');
  await fence();
  await reach('gap', 'gap');
  const result = await attempt(request());
  await reach('landed', 'landed');
  if (mode === 'throw' && no === 1) throw new Error('planned: the tool threw after its effect');
  return enlarged(kind, mode, result);
}

function paying(
  kind: ToolKind,
  options: Partial<ToolOptions<Args, unknown>>,
  limits: Limits,
): DefinedTool<Args, unknown> {
  return defineTool<Args, unknown>({
    description: `Pays back, as ${kind}`,
    inputSchema,
    needsApproval: ({ mode }) => mode === 'ask',
    ...limits,
    execute: (input, context) =>
      steps({ kind }, input, context, () =>
        service.refund(
          { chargeId: 'ch_1001', cents: 100, reason: input.tag },
          context.idempotencyKey,
          reckless ? undefined : context.abortSignal,
        ),
      ),
    ...options,
  });
}

function reading(tool: string, limits: Limits): DefinedTool<Args, unknown> {
  const execute: DefinedTool<Args, unknown>['execute'] = (input, context) =>
    steps({ kind: 'read', tool }, input, context, () => service.order('1001', context.abortSignal));
  return paying('read', { effect: 'read', execute }, limits);
}

const verifying =
  (kind: ToolKind) =>
  async ({ mode }: Args, { idempotencyKey, abortSignal }: ToolContext): Promise<Verification<unknown>> => {
    if (lies) return { outcome: 'absent' };
    const found = await service.find(idempotencyKey, abortSignal);
    if (found.outcome === 'absent') return found;
    return { outcome: 'landed', output: enlarged(kind, mode, found.output) };
  };

interface Limits {
  timeout: `${number}ms`;
  settle: `${number}ms`;
}

function tools(limits: Limits): Record<string, DefinedTool<Args, unknown>> {
  return {
    [TOOL.read]: reading(TOOL.read, limits),
    [ALSO_READ]: reading(ALSO_READ, limits),
    [TOOL.idempotent]: paying('idempotent', { effect: 'idempotent' }, limits),
    [TOOL.mutate]: paying('mutate', { verify: verifying('mutate') }, limits),
    [TOOL.blind]: paying('blind', {}, limits),
    [TOOL.global]: paying(
      'global',
      { verify: verifying('global'), idempotency: { scope: 'global', ttl: '1h' } },
      limits,
    ),
    // It also has one tool more.
    ...(deploy === '1' ? {} : { greet: paying('read', { effect: 'read' }, limits) }),
  };
}

const common = {
  model: { model: 'scripted', price: PRICE },
  instructions: `Do what the message says. Version ${deploy}.`,
  maxOutputTokens: 256,
  heartbeat: '1s',
  loopLimit: 1_000,
  // Runs end as often as possible: after each turn.
  ...(runTurns === '' ? {} : { runTurns: Number(runTurns) }),
} as const;

/** For all faults but time. */
export const careful: DefinedAgent = defineAgent({
  ...common,
  name: 'careful',
  tools: tools({ timeout: '30000ms', settle: '300ms' }),
});

const taskInput = z.object({ tag: z.string(), task: z.string() });

const manager = defineAgent({
  ...common,
  name: 'manager',
  tools: { [DELEGATE.assign]: agentTool(careful, { input: taskInput }) },
});

/** The root of a tree of three levels. */
export const director: DefinedAgent = defineAgent({
  ...common,
  name: 'director',
  tools: { [DELEGATE.delegate]: agentTool(manager, { input: taskInput }) },
});

const inBackground = { input: taskInput, background: true, atEnd } as const;

const steward = defineAgent({
  ...common,
  name: 'steward',
  tools: {
    [DELEGATE.assign]: agentTool(careful, { input: taskInput }),
    [DELEGATE.launch]: agentTool(careful, inBackground),
  },
});

/** The root of a tree of three levels, with one sub-agent in the background. */
export const overseer: DefinedAgent = defineAgent({
  ...common,
  name: 'overseer',
  tools: {
    [DELEGATE.delegate]: agentTool(steward, { input: taskInput }),
    [DELEGATE.launch]: agentTool(steward, inBackground),
  },
});

/** An e-mail undoes a payment. */
const reversible: DefinedTool<Args, unknown> = paying(
  'mutate',
  {
    verify: verifying('mutate'),
    compensate: {
      execute: async ({ tag }, output, { idempotencyKey, abortSignal, fence }) => {
        await breakpoint('undoing', tag);
        await fence();
        const mail = { to: 'customer@example.com', subject: tag, body: JSON.stringify(output) };
        const sent = await attempt(service.sendEmail(mail, idempotencyKey, abortSignal));
        await breakpoint('undone', tag);
        return sent;
      },
      verify: (_, __, { idempotencyKey }) => service.findEmail(idempotencyKey),
    },
  },
  { timeout: '30000ms', settle: '300ms' },
);

/** Its effects can be undone. */
export const repentant: DefinedAgent = defineAgent({
  ...common,
  name: 'repentant',
  tools: { [TOOL.mutate]: reversible },
});

/** Its tools are those of an MCP server. Workers without an MCP server have no such agent. */
export const connected: DefinedAgent | null = await withMcp(process.env['LAB_MCP']);

async function withMcp(plan: string | undefined): Promise<DefinedAgent | null> {
  if (plan === undefined) return null;
  const { mcpToolsOf } = await import('./mcp/agent.ts');
  return defineAgent({
    ...common,
    name: 'connected',
    tools: await mcpToolsOf(JSON.parse(plan) as AgentPlan, service),
  });
}

/** Its heartbeat timeout is an hour. */
export const patient: DefinedAgent = defineAgent({
  ...common,
  name: 'patient',
  heartbeat: '1h',
  tools: tools({ timeout: '30000ms', settle: '300ms' }),
});

/** Waits long after a lost worker: a late effect lands within the settle time. */
export const late: DefinedAgent = defineAgent({
  ...common,
  name: 'late',
  tools: tools({ timeout: '30000ms', settle: '6000ms' }),
});

/** Gives up long before the service does. A late effect lands within the settle time. */
export const hasty: DefinedAgent = defineAgent({
  ...common,
  name: 'hasty',
  tools: tools({ timeout: '400ms', settle: '6000ms' }),
});
