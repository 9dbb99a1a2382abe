import type { SharedV3ProviderOptions } from '@ai-sdk/provider';
import type { Duration } from '@temporalio/common';
import type { FlexibleSchema, LanguageModel, Tool } from 'ai';
import { messageOf, PerdureError } from '../contract/errors.ts';
import type { JsonObject } from '../contract/json.ts';
import type { BudgetLimits, ModelPrice, SubAgentLimits } from '../contract/manifest.ts';
import { PLAN_TOOL } from '../contract/plan.ts';
import { loopProblem } from './agent-loops.ts';
import { choiceProblem, countProblem, durationProblem, kindProblem, nameProblem } from './checks.ts';
import { contextProblem } from './context.ts';
import { type ContextWindowOptions, contextWindowProblem } from './context-window.ts';
import {
  annotatedTool,
  checkedTool,
  type DefinedTool,
  defineTool,
  type ToolEffect,
  type ToolOptions,
} from './define-tool.ts';
import { contextSchemaProblem, outputSchemaProblem } from './input-schema.ts';

/** A model of an agent: an AI SDK model, or `provider:model` in the worker's registry. A `usd` cap needs its price. */
export type ModelChoice =
  | LanguageModel
  | {
      model: LanguageModel;
      price?: ModelPrice;
      /** The most tokens of one reply. Default: the agent's. */
      maxOutputTokens?: number;
    };

/** Any tool. The tools of an agent have different inputs and outputs, and each was checked where it was defined. */
export type AnyTool = Tool | { readonly perdure: 'tool' | 'plain'; readonly inputSchema: FlexibleSchema };

/** An agent: a model, instructions and tools, with its limits. */
export interface AgentOptions<CONTEXT = unknown, OUTPUT = unknown> {
  /** The name that clients use: letters, digits, `-`, `_` and `.`. */
  name: string;
  /** One model, or several in order. The next one is asked when one is down or refuses. */
  model: ModelChoice | readonly ModelChoice[];
  /**
   * What the model must do: a text, or a function of the session's context that returns it. The worker calls the function
   * for each model call. It has five seconds. If it throws or returns no text, the session waits and says why; `resume`
   * calls it again. A replay does not call it.
   */
  instructions: string | ((options: { context: CONTEXT }) => string | PromiseLike<string>);
  /**
   * The most bytes that an `instructions` function may return. Default: 16,384. Under a cap on tokens or dollars, each
   * model call reserves that many tokens.
   */
  maxInstructionsBytes?: number;
  /**
   * The schema of a session's context, what the application knows about the session's user:
   * `z.object({ tenant: z.string(), userId: z.string() })`. Tools get the context, the model does not. A session whose context
   * does not fit waits, and names the field. The field `tenant` must be a string.
   */
  context?: FlexibleSchema<CONTEXT>;
  /**
   * Tools by name. A plain AI SDK `tool()` does not declare its effect: each of its calls counts as a mutation of its own,
   * and a lost call waits for a person. Declare it in `effects`.
   */
  tools?: Readonly<Record<string, AnyTool>>;
  /** The effects of imported tools, by the tool's name: `{ searchOrders: 'read' }`. */
  effects?: Readonly<Record<string, ToolEffect>>;
  /**
   * The schema of an answer: `z.object({ total: z.number() })`. The model is told to answer with JSON that fits, by the
   * provider's own means where it has some. The worker checks each answer; one that does not fit is asked for again, twice at most,
   * and then the session waits. The checked value is in `session.result()` and in `state()`. Default: an answer is a text.
   */
  output?: FlexibleSchema<OUTPUT>;
  /** Caps for each session. The start of a session can override them. */
  budget?: BudgetLimits;
  /**
   * The most tokens of one reply, sent to the provider and reserved in the budget. The clients of Anthropic and Bedrock
   * add the thinking budget of `providerOptions` to it. Default: 4,096.
   */
  maxOutputTokens?: number;
  temperature?: number;
  /** Passed to the model unchanged, by provider: `{ openai: { reasoningEffort: 'low' } }`. */
  providerOptions?: SharedV3ProviderOptions;
  /** After this many equal calls in a row, the session waits for a person. Default: 3. */
  loopLimit?: number;
  /** `ordered` (default): reads in parallel, all other calls one after the other. `parallel`: all at once. */
  toolOrder?: 'ordered' | 'parallel';
  /** Offers the built-in plan tool. Default: false. */
  plan?: boolean;
  /** The heartbeat time-out: after this time without a heartbeat, a call's worker counts as lost. Default: 10 seconds. */
  heartbeat?: Duration;
  /** How long a provider may send nothing before the request counts as lost. Default: 2 minutes. */
  modelTimeout?: Duration;
  /**
   * How long one model call may take in total, whatever the provider sends. Default: 15 minutes. Then the request counts
   * as lost: it is charged, because it may have been billed, and repeated.
   */
  modelCallTimeout?: Duration;
  /**
   * Turns after which a session goes on in a new run of its workflow, or earlier when its history has a megabyte or 3,000
   * events. What it has said and done is stored beside it. Default: 50. `false`: it stays in one run, whose history ends at 15,000 events.
   */
  runTurns?: number | false;
  /**
   * How a session stays within the model's context window: before a prompt gets too large, the model summarizes the older
   * messages. Default: on. `false`: never; a prompt that is too large is refused by the provider, and the session waits.
   */
  contextWindow?: ContextWindowOptions | false;
  /**
   * Its sub-agents, which {@link agentTool} gives it: how many agents may be below one another under the root (default: 5),
   * and how many sub-agents of one session may be open at a time (default: 10). Further ones wait.
   */
  subAgents?: SubAgentLimits;
}

/** A checked agent definition. */
export interface DefinedAgent<INPUT extends object = object, OUTPUT = unknown>
  extends Omit<AgentOptions, 'model' | 'tools' | 'effects'> {
  readonly perdure: 'agent';
  /** Only a type, never set: what a session of this agent takes as its context. */
  readonly contextInput?: INPUT;
  /** Only a type, never set: what a session of this agent answers with. */
  readonly outputValue?: OUTPUT;
  readonly models: readonly { model: LanguageModel; price?: ModelPrice; maxOutputTokens?: number }[];
  readonly tools: Readonly<Record<string, DefinedTool>>;
  /** What is wrong with a context for this agent and its tools, naming the field, or `null`. */
  contextProblem: (
    this: DefinedAgent,
    context: JsonObject | undefined,
  ) => Promise<{ field: string; problem: string; message: string } | null>;
}

const NAMES: readonly (keyof AgentOptions)[] = [
  'name',
  'model',
  'instructions',
  'maxInstructionsBytes',
  'context',
  'output',
  'tools',
  'effects',
  'budget',
  'maxOutputTokens',
  'temperature',
  'providerOptions',
  'loopLimit',
  'toolOrder',
  'plan',
  'heartbeat',
  'modelTimeout',
  'modelCallTimeout',
  'runTurns',
  'contextWindow',
  'subAgents',
];
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** The ids of calls. A tool with such a name could make the keys of two sessions' calls equal. */
const CALL_ID = /^call_\d+_\d+$/;

/**
 * Defines an agent.
 *
 * @throws PerdureError `INVALID_DEFINITION` naming the field and what to write.
 *
 * @example
 * ```ts
 * import { defineAgent, defineTool } from 'perdure';
 * import { z } from 'zod';
 *
 * const refund = defineTool({
 *   description: 'Refund an order',
 *   inputSchema: z.object({ order: z.string(), cents: z.int() }),
 *   effect: 'mutate',
 *   execute: async ({ order, cents }, { idempotencyKey }) => {
 *     const headers = { 'Idempotency-Key': idempotencyKey };
 *     const answer = await fetch(`https://payments.example/${order}/refunds/${cents}`, { method: 'POST', headers });
 *     return { refunded: answer.ok };
 *   },
 * });
 *
 * export const desk = defineAgent({
 *   name: 'desk',
 *   model: 'openai:gpt-5',
 *   instructions: 'Help with orders.',
 *   tools: { refund },
 * });
 * ```
 */
export function defineAgent<CONTEXT = unknown, INPUT extends object = object, OUTPUT = unknown>(
  options: AgentOptions<CONTEXT, OUTPUT> & {
    // What the schema takes differs from what it returns where a field has a default.
    context?: { readonly '~standard'?: { readonly types?: { readonly input: INPUT } | undefined } };
  },
  // A schema of any type takes any object.
): DefinedAgent<unknown extends INPUT ? object : INPUT, OUTPUT> {
  const { name, model, instructions, tools = {}, effects = {}, budget = {}, plan = false, ...rest } = options;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid(`name is ${JSON.stringify(name)}: write 1 to 64 letters, digits, '-', '_' or '.'`);
  }
  const isWritten = typeof instructions === 'string' && instructions.trim() !== '';
  if (!isWritten && typeof instructions !== 'function') {
    throw invalid(`agent ${name}: instructions is empty: write what the agent must do`);
  }
  const slip = nameProblem('', options, NAMES);
  if (slip !== null) throw invalid(`agent ${name}: ${slip}`);
  const kind = kindsProblem(options);
  if (kind !== null) throw invalid(`agent ${name}: ${kind}`);
  const models = (Array.isArray(model) ? (model as readonly ModelChoice[]) : [model as ModelChoice]).map(
    (choice) =>
      typeof choice === 'object' && choice !== null && 'model' in choice ? choice : { model: choice },
  );
  if (models.length === 0 || models.some((choice) => !isModel(choice.model))) {
    throw invalid(
      `agent ${name}: model is missing: write model: openai('…'), 'provider:model', or a list of them`,
    );
  }
  if (budget.usd !== undefined && models.some(({ price }) => price === undefined)) {
    throw invalid(
      `agent ${name}: budget.usd needs a price for each model: ` +
        'write model: { model, price: { inputPerMillion, outputPerMillion } }',
    );
  }
  const problem = limitsProblem(options, models);
  if (problem !== null) throw invalid(`agent ${name}: ${problem}`);
  const checked: Record<string, DefinedTool> = {};
  for (const [toolName, tool] of Object.entries(tools)) {
    if (!TOOL_NAME.test(toolName) || toolName === '__proto__') {
      throw invalid(
        `agent ${name}: tools.${toolName}: write 1 to 64 letters, digits, '-' or '_' as its name`,
      );
    }
    if (CALL_ID.test(toolName)) {
      throw invalid(`agent ${name}: tools.${toolName} looks like the id of a call: rename it`);
    }
    if (plan && toolName === PLAN_TOOL) {
      throw invalid(
        `agent ${name}: tools.${toolName} is the built-in plan tool's name: rename it, or drop plan`,
      );
    }
    checked[toolName] = checkTool(
      name,
      toolName,
      tool,
      Object.hasOwn(effects, toolName) ? effects[toolName] : undefined,
    );
  }
  const loop = loopProblem(name, checked);
  if (loop !== null) throw invalid(`agent ${name}: ${loop}`);
  const unknown = Object.keys(effects).find((toolName) => !Object.hasOwn(checked, toolName));
  if (unknown !== undefined) {
    const names = Object.keys(checked).join(', ') || 'none';
    throw invalid(`agent ${name}: effects.${unknown} is not a tool of this agent. Its tools: ${names}`);
  }
  return {
    ...rest,
    perdure: 'agent',
    name,
    // It is only called with what the context's schema returns.
    instructions: instructions as DefinedAgent['instructions'],
    models,
    tools: checked,
    budget,
    plan,
    contextProblem(context) {
      return contextProblem(this, context);
    },
  };
}

/**
 * Checks a definition again where it is used, because it may be a changed copy that {@link defineAgent} has not checked.
 *
 * @throws PerdureError `INVALID_DEFINITION` as {@link defineAgent}.
 */
export function checkedAgent(definition: DefinedAgent): DefinedAgent {
  const { perdure, models, contextProblem: _own, ...options }: Partial<DefinedAgent> = definition ?? {};
  if (perdure !== 'agent' || !Array.isArray(models)) {
    throw invalid(`agent ${options.name}: it is not a defined agent: write defineAgent({ … })`);
  }
  if ('model' in options) {
    throw invalid(`agent ${options.name}: model is set on a defined agent: write models`);
  }
  return defineAgent({
    ...(options as Omit<DefinedAgent, 'perdure' | 'models' | 'contextProblem'>),
    model: models,
  });
}

function isModel(model: unknown): boolean {
  return (typeof model === 'string' && model !== '') || (typeof model === 'object' && model !== null);
}

/** The options, with types that fit every agent. */
type Checkable = Omit<AgentOptions, 'instructions' | 'context'> & { context?: unknown };

/** The problem of an option with a wrong type, or `null`. */
function kindsProblem(options: Checkable): string | null {
  const { tools, budget, plan, temperature, providerOptions } = options;
  const kind =
    contextSchemaProblem(options.context) ??
    outputSchemaProblem(options.output) ??
    kindProblem('tools', tools, 'an object') ??
    kindProblem('effects', options.effects, 'an object') ??
    kindProblem('budget', budget, 'an object') ??
    kindProblem('plan', plan, 'true or false') ??
    kindProblem('temperature', temperature, 'a number, 0 or more') ??
    kindProblem('providerOptions', providerOptions, 'an object');
  if (kind !== null) return kind;
  for (const [provider, given] of Object.entries(providerOptions ?? {})) {
    const problem = kindProblem(`providerOptions.${provider}`, given, 'an object');
    if (problem !== null) return problem;
  }
  return null;
}

const PRICES: readonly (keyof ModelPrice)[] = [
  'inputPerMillion',
  'outputPerMillion',
  'cacheReadPerMillion',
  'cacheWritePerMillion',
];
const CAPS: readonly string[] = ['turns', 'toolCalls', 'tokens', 'usd', 'activeMs'];

/** The problem of an agent's numbers and choices, with what to write instead, or `null`. */
function limitsProblem(options: Checkable, models: DefinedAgent['models']): string | null {
  for (const [cap, value] of Object.entries(options.budget ?? {})) {
    if (!CAPS.includes(cap))
      return `budget.${cap} is not a cap: write turns, toolCalls, tokens, usd or activeMs`;
    if (!Number.isFinite(value) || value < 0)
      return `budget.${cap} is ${value}: write a number, 0 or more, or leave it out`;
  }
  for (const { price, maxOutputTokens } of models) {
    const slip = nameProblem('price.', price, PRICES);
    if (slip !== null) return slip;
    for (const field of PRICES) {
      const dollars = price?.[field];
      const needed = field === 'inputPerMillion' || field === 'outputPerMillion';
      if (
        price !== undefined &&
        (needed || dollars !== undefined) &&
        !(Number.isFinite(dollars) && Number(dollars) >= 0)
      )
        return `price.${field} is ${dollars}: write US dollars for a million tokens, 0 or more`;
    }
    const problem = countProblem('maxOutputTokens', maxOutputTokens);
    if (problem !== null) return problem;
  }
  return (
    countProblem('maxOutputTokens', options.maxOutputTokens) ??
    countProblem('loopLimit', options.loopLimit) ??
    (options.runTurns === false ? null : countProblem('runTurns', options.runTurns)) ??
    countProblem('maxInstructionsBytes', options.maxInstructionsBytes) ??
    contextWindowProblem(options.contextWindow) ??
    nameProblem('subAgents.', options.subAgents, ['depth', 'open']) ??
    countProblem('subAgents.depth', options.subAgents?.depth) ??
    countProblem('subAgents.open', options.subAgents?.open) ??
    choiceProblem('toolOrder', options.toolOrder, ['ordered', 'parallel']) ??
    durationProblem('heartbeat', options.heartbeat) ??
    durationProblem('modelTimeout', options.modelTimeout) ??
    durationProblem('modelCallTimeout', options.modelCallTimeout)
  );
}

function checkTool(agent: string, name: string, tool: AnyTool, effect?: ToolEffect): DefinedTool {
  if (tool === null || typeof tool !== 'object') {
    throw invalid(
      `agent ${agent}: tools.${name} is not a tool: write defineTool({ … }) or the AI SDK's tool({ … })`,
    );
  }
  try {
    // The mark alone is not enough: a spread copies it and can change everything else.
    const options = tool as ToolOptions<unknown, unknown>;
    if (effect !== undefined) return annotatedTool(options, effect);
    const mark = 'perdure' in tool ? tool.perdure : undefined;
    if (mark === 'tool') return defineTool(options);
    return checkedTool(options, options.effect === undefined ? 'plain' : 'tool');
  } catch (error) {
    throw invalid(`agent ${agent}: tools.${name}: ${messageOf(error)}`);
  }
}

function invalid(message: string): PerdureError {
  return new PerdureError('INVALID_DEFINITION', message);
}
