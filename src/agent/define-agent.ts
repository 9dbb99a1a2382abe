import type { SharedV3ProviderOptions } from '@ai-sdk/provider';
import type { Duration } from '@temporalio/common';
import type { FlexibleSchema, LanguageModel, Tool } from 'ai';
import { PerdureError } from '../contract/errors.ts';
import type { BudgetLimits, ModelPrice } from '../contract/manifest.ts';
import { PLAN_TOOL } from '../contract/plan.ts';
import { choiceProblem, countProblem, durationProblem, kindProblem, nameProblem } from './checks.ts';
import { checkedTool, type DefinedTool, defineTool, type ToolOptions } from './define-tool.ts';

/** A model of an agent: an AI SDK model, or `provider:model` of the worker's registry; with a price when money is capped. */
export type ModelChoice =
  | LanguageModel
  | {
      model: LanguageModel;
      price?: ModelPrice;
      /** The most tokens of one reply; default: the agent's. */
      maxOutputTokens?: number;
    };

/** Any tool: inputs and outputs vary within one agent, and each was checked where it was defined. */
export type AnyTool = Tool | { readonly perdure: 'tool'; readonly inputSchema: FlexibleSchema };

/** An agent: a model, instructions and tools, with its limits. */
export interface AgentOptions {
  /** Letters, digits, `-`, `_` and `.`; how clients name it. */
  name: string;
  /** One model, or several in order: the next is asked when one is down or refuses. */
  model: ModelChoice | readonly ModelChoice[];
  instructions: string;
  /** Tools by name. A plain AI SDK `tool()` is accepted and treated as `mutate`. */
  tools?: Readonly<Record<string, AnyTool>>;
  /** Caps for each session; a session may be started with others. */
  budget?: BudgetLimits;
  /**
   * The most tokens of one reply: sent to the provider, and what is reserved, with the budget for thoughts of
   * `providerOptions` that the clients of Anthropic and Bedrock add to it. Default: 4,096.
   */
  maxOutputTokens?: number;
  temperature?: number;
  /** Handed to the model as they are, by provider: `{ openai: { reasoningEffort: 'low' } }`. */
  providerOptions?: SharedV3ProviderOptions;
  /** Equal calls in a row after which a session stops for a person. Default: 3. */
  loopLimit?: number;
  /** `ordered` (default): reads in parallel, writes and mutations one after the other. `parallel`: all at once. */
  toolOrder?: 'ordered' | 'parallel';
  /** Offers the built-in plan tool. Default: false. */
  plan?: boolean;
  /** How long a model or tool call may give no sign of life before its worker counts as lost. Default: 10 seconds. */
  heartbeat?: Duration;
  /** How long a provider may send nothing before the request counts as lost. Default: 2 minutes. */
  modelTimeout?: Duration;
}

/** A checked agent definition. */
export interface DefinedAgent extends Omit<AgentOptions, 'model' | 'tools'> {
  readonly perdure: 'agent';
  readonly models: readonly { model: LanguageModel; price?: ModelPrice; maxOutputTokens?: number }[];
  readonly tools: Readonly<Record<string, DefinedTool>>;
}

const NAMES: readonly (keyof AgentOptions)[] = [
  'name',
  'model',
  'instructions',
  'tools',
  'budget',
  'maxOutputTokens',
  'temperature',
  'providerOptions',
  'loopLimit',
  'toolOrder',
  'plan',
  'heartbeat',
  'modelTimeout',
];
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** The id of a call: as a tool's name it could make the keys of calls of two sessions the same. */
const CALL_ID = /^call_\d+_\d+$/;

/**
 * Defines an agent.
 *
 * @throws PerdureError `INVALID_DEFINITION` naming the field and what to write.
 */
export function defineAgent(options: AgentOptions): DefinedAgent {
  const { name, model, instructions, tools = {}, budget = {}, plan = false, ...rest } = options;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid(`name is ${JSON.stringify(name)}: write 1 to 64 letters, digits, '-', '_' or '.'`);
  }
  if (typeof instructions !== 'string' || instructions.trim() === '') {
    throw invalid(`agent ${name}: instructions is empty: write what the agent is to do`);
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
      throw invalid(`agent ${name}: tools.${toolName} is what ids of calls look like: rename it`);
    }
    if (plan && toolName === PLAN_TOOL) {
      throw invalid(
        `agent ${name}: tools.${toolName} is the built-in plan tool's name: rename it, or drop plan`,
      );
    }
    checked[toolName] = checkTool(name, toolName, tool);
  }
  return { ...rest, perdure: 'agent', name, instructions, models, tools: checked, budget, plan };
}

/**
 * Checks a definition again where it is used, for a copy that was changed has not been through {@link defineAgent}.
 *
 * @throws PerdureError `INVALID_DEFINITION` as {@link defineAgent}.
 */
export function checkedAgent(definition: DefinedAgent): DefinedAgent {
  const { perdure, models, ...options }: Partial<DefinedAgent> = definition ?? {};
  if (perdure !== 'agent' || !Array.isArray(models)) {
    throw invalid(`agent ${options.name}: it is not what defineAgent gives: write defineAgent({ … })`);
  }
  if ('model' in options) {
    throw invalid(
      `agent ${options.name}: model is set on a defined agent, whose models are known: write models`,
    );
  }
  return defineAgent({ ...(options as Omit<DefinedAgent, 'perdure' | 'models'>), model: models });
}

function isModel(model: unknown): boolean {
  return (typeof model === 'string' && model !== '') || (typeof model === 'object' && model !== null);
}

/** An option that is not of its kind, or `null`. */
function kindsProblem(options: AgentOptions): string | null {
  const { tools, budget, plan, temperature, providerOptions } = options;
  const kind =
    kindProblem('tools', tools, 'an object') ??
    kindProblem('budget', budget, 'an object') ??
    kindProblem('plan', plan, 'true or false') ??
    kindProblem('temperature', temperature, 'a number from 0') ??
    kindProblem('providerOptions', providerOptions, 'an object');
  if (kind !== null) return kind;
  for (const [provider, given] of Object.entries(providerOptions ?? {})) {
    const problem = kindProblem(`providerOptions.${provider}`, given, 'an object');
    if (problem !== null) return problem;
  }
  return null;
}

const CAPS: readonly string[] = ['turns', 'toolCalls', 'tokens', 'usd', 'activeMs'];

/** What is wrong with an agent's numbers and choices, with what to write instead, or `null`. */
function limitsProblem(options: AgentOptions, models: DefinedAgent['models']): string | null {
  for (const [cap, value] of Object.entries(options.budget ?? {})) {
    if (!CAPS.includes(cap))
      return `budget.${cap} is not a cap: write turns, toolCalls, tokens, usd or activeMs`;
    if (!Number.isFinite(value) || value < 0)
      return `budget.${cap} is ${value}: write a number from 0, or leave it out`;
  }
  for (const { price, maxOutputTokens } of models) {
    for (const field of ['inputPerMillion', 'outputPerMillion'] as const) {
      const dollars = price?.[field];
      if (price !== undefined && !(Number.isFinite(dollars) && Number(dollars) >= 0))
        return `price.${field} is ${dollars}: write US dollars for a million tokens, a number from 0`;
    }
    const problem = countProblem('maxOutputTokens', maxOutputTokens);
    if (problem !== null) return problem;
  }
  return (
    countProblem('maxOutputTokens', options.maxOutputTokens) ??
    countProblem('loopLimit', options.loopLimit) ??
    choiceProblem('toolOrder', options.toolOrder, ['ordered', 'parallel']) ??
    durationProblem('heartbeat', options.heartbeat) ??
    durationProblem('modelTimeout', options.modelTimeout)
  );
}

function checkTool(agent: string, name: string, tool: AnyTool): DefinedTool {
  if (tool === null || typeof tool !== 'object') {
    throw invalid(
      `agent ${agent}: tools.${name} is not a tool: write defineTool({ … }) or the AI SDK's tool({ … })`,
    );
  }
  try {
    // A mark says who defined a tool, not what became of it: a spread copies it, whatever else it writes.
    const options = tool as ToolOptions<unknown, unknown>;
    return 'perdure' in tool ? defineTool(options) : checkedTool(options);
  } catch (error) {
    throw invalid(`agent ${agent}: tools.${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function invalid(message: string): PerdureError {
  return new PerdureError('INVALID_DEFINITION', message);
}
