/** What is wrong with the definition of an agent. */

import type { ModelPrice } from '../contract/manifest.ts';
import type { AgentOptions, DefinedAgent } from './agent-options.ts';
import {
  choiceProblem,
  countProblem,
  durationProblem,
  kindProblem,
  LONGEST_TIMER,
  nameProblem,
} from './checks.ts';
import { contextWindowProblem } from './context-window.ts';
import { contextSchemaProblem, outputSchemaProblem } from './input-schema.ts';

export function isModel(model: unknown): boolean {
  return (typeof model === 'string' && model !== '') || (typeof model === 'object' && model !== null);
}

/** The options, with types that fit every agent. */
type Checkable = Omit<AgentOptions, 'instructions' | 'context'> & { context?: unknown };

/** The problem of an option with a wrong type, or `null`. */
export function kindsProblem(options: Checkable): string | null {
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
export function limitsProblem(options: Checkable, models: DefinedAgent['models']): string | null {
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
    durationProblem('heartbeat', options.heartbeat, { longest: LONGEST_TIMER }) ??
    durationProblem('modelTimeout', options.modelTimeout, { longest: LONGEST_TIMER }) ??
    durationProblem('modelCallTimeout', options.modelCallTimeout)
  );
}
