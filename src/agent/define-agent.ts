import { messageOf, PerdureError } from '../contract/errors.ts';
import { PLAN_TOOL } from '../contract/plan.ts';
import { loopProblem } from './agent-loops.ts';
import type { AgentOptions, AnyTool, DefinedAgent, ModelChoice } from './agent-options.ts';
import { isModel, kindsProblem, limitsProblem } from './agent-problem.ts';
import { nameProblem } from './checks.ts';
import { contextProblem } from './context.ts';
import { annotatedTool, checkedTool, type DefinedTool, defineTool, type ToolEffect } from './define-tool.ts';
import type { ToolOptions } from './tool-options.ts';

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
    // A schema's input differs from its output where a field has a default.
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
    // Instructions are only called with what the context's schema returns.
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
 * Checks a definition again where it is used, because it may be a changed copy that {@link defineAgent} has not
 * checked.
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
