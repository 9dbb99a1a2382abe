/** Money is reserved before it is spent: what a model call can cost at most, and what it did cost. */

import { defined } from '../contract/json.ts';
import type { BudgetLimits, Manifest, ModelManifest } from '../contract/manifest.ts';
import type { Usage } from '../contract/model-call.ts';
import { outputRequest } from '../contract/output.ts';
import { PLAN_DESCRIPTION, PLAN_SCHEMA } from '../contract/plan.ts';
import { NANO_PER_USD, type SessionState } from '../contract/state.ts';
import { BYTES_PER_TOKEN } from '../contract/view.ts';

/** Tokens that chat templates add around a message and around the whole prompt. */
const OVERHEAD = { message: 16, prompt: 64 };
const PLAN_LENGTH = PLAN_DESCRIPTION.length + JSON.stringify(PLAN_SCHEMA).length;

/**
 * The cost of tokens in whole billionths of a dollar, rounded up. A price is first rounded to the millionth of a
 * dollar, so that no floating-point fraction enters the product.
 */
function cost(tokens: number, perMillion: number): number {
  return Math.ceil((tokens * Math.round(perMillion * 1_000_000)) / 1_000);
}

/** Billionths of a dollar as dollars. */
export function usd(nanoUsd: number): number {
  return nanoUsd / NANO_PER_USD;
}

/**
 * The most tokens that the next prompt can have, with a further message of `resultBytes`. A byte-level tokenizer never
 * makes more tokens than bytes, so the bytes are an upper bound. The part of the prompt whose tokens the last reply's
 * usage counted is taken from there.
 */
function promptTokensBound(state: SessionState, resultBytes: number): number {
  const manifest = state.manifest;
  if (manifest === null) return 0;
  const fresh = state.promptBytes + resultBytes - (state.measured?.bytes ?? 0);
  const messages = state.position.count - (state.summarized ?? 0) + (resultBytes > 0 ? 2 : 1);
  // Instructions that are a function may return a longer text each time, whatever was measured before.
  const fixed =
    (state.measured === null ? manifestBytes(manifest) + OVERHEAD.prompt : 0) +
    (manifest.instructionsBytes ?? 0);
  return (state.measured?.tokens ?? 0) + fixed + fresh + OVERHEAD.message * messages;
}

function manifestBytes(manifest: Manifest): number {
  // A UTF-16 unit has at most three bytes in UTF-8: so the definition need not be measured before each call.
  return 3 * manifestLength(manifest);
}

function manifestLength({ instructions, tools, plan, output }: Manifest): number {
  const schema = output === undefined ? 0 : outputRequest(output).length;
  return instructions.length + schema + JSON.stringify(tools).length + (plan ? PLAN_LENGTH : 0);
}

/** Tokens of the next prompt: the provider's count of the last prompt, plus an estimate of what is new. */
export function promptTokens({ manifest, measured, promptBytes }: SessionState): number {
  if (manifest === null) return 0;
  const bytes = promptBytes - (measured?.bytes ?? 0);
  const fixed = measured === null ? manifestLength(manifest) + (manifest.instructionsBytes ?? 0) : 0;
  return (measured?.tokens ?? 0) + Math.ceil((bytes + fixed) / BYTES_PER_TOKEN);
}

/**
 * The worst case of the next model call, over all models that may answer it.
 *
 * @param bytes - of a message that is added to the prompt before the model is asked
 */
export function worstCase(state: SessionState, bytes = 0): { nanoUsd: number; tokens: number } {
  const input = promptTokensBound(state, bytes);
  let nanoUsd = 0;
  let tokens = 0;
  for (const model of state.manifest?.models ?? []) {
    tokens = Math.max(tokens, input + model.maxOutputTokens);
    nanoUsd = Math.max(nanoUsd, price(model, input, model.maxOutputTokens));
  }
  return { nanoUsd, tokens };
}

/** The price of a call. Without `cached`, the most it can cost: all input at the highest of the input prices. */
function price(
  model: ModelManifest,
  input: number,
  output: number,
  cached?: { read: number; write: number },
): number {
  if (model.price === null) return 0;
  const { inputPerMillion: plain, outputPerMillion } = model.price;
  const { cacheReadPerMillion: read = plain, cacheWritePerMillion: write = plain } = model.price;
  if (cached === undefined) return cost(input, Math.max(plain, read, write)) + cost(output, outputPerMillion);
  const fresh = Math.max(0, input - cached.read - cached.write);
  return (
    cost(fresh, plain) + cost(cached.read, read) + cost(cached.write, write) + cost(output, outputPerMillion)
  );
}

/** Why a cap on dollars cannot be kept, or `null`. */
export function capProblem({ models, agent }: Manifest, { usd: cap }: BudgetLimits): string | null {
  const free = models.find(({ price }) => price === null);
  if (free === undefined || cap === undefined) return null;
  return `usd: model ${free.id} has no price, so there can be no usd cap. Set its price in the definition of ${agent}`;
}

/** A cap that a further cost would exceed, the lowest cap that would allow the cost, and a message about it. */
export interface Exceeded {
  cap: keyof BudgetLimits;
  atLeast: number;
  message: string;
}

/** The first cap that a further cost would exceed, or `null`. */
export function exceeded(
  state: SessionState,
  further: { nanoUsd: number; tokens: number; turns: number; toolCalls: number },
): Exceeded | null {
  const { spent, reserved } = state.budget;
  const { toolCalls } = state.budget.limits;
  // The pool of a tree holds the tree's caps, except the cap on tool calls.
  const limits: BudgetLimits = state.pool?.caps === undefined ? state.budget.limits : defined({ toolCalls });
  const over = (cap: keyof BudgetLimits, atLeast: number, unit: string): Exceeded | null => {
    const limit = limits[cap];
    if (limit === undefined || atLeast <= limit) return null;
    const message = `${cap}: ${atLeast} ${unit} would be spent or reserved, the cap is ${limit}`;
    return { cap, atLeast, message };
  };
  return (
    over('turns', spent.turns + further.turns, 'turns') ??
    over('toolCalls', spent.toolCalls + further.toolCalls, 'tool calls') ??
    over('tokens', spent.inputTokens + spent.outputTokens + reserved.tokens + further.tokens, 'tokens') ??
    over('usd', usd(spent.nanoUsd + reserved.nanoUsd + further.nanoUsd), 'US dollars') ??
    // Every step takes some time.
    over('activeMs', spent.activeMs + 1, 'ms of active time')
  );
}

/** Charges a reply. Tokens that the provider did not count are charged as reserved. */
export function chargeReply(
  state: SessionState,
  model: ModelManifest | undefined,
  usage: Usage,
  reserved: { nanoUsd: number; tokens: number },
): void {
  const { spent } = state.budget;
  if (usage.inputTokens === null || usage.outputTokens === null) {
    spent.inputTokens += reserved.tokens;
    spent.nanoUsd += reserved.nanoUsd;
    return;
  }
  spent.inputTokens += usage.inputTokens;
  spent.outputTokens += usage.outputTokens;
  // Some providers count cached tokens on top of the input: they must not be charged twice.
  const read = Math.min(usage.cachedInputTokens ?? 0, usage.inputTokens);
  const write = Math.min(usage.cacheWriteTokens ?? 0, usage.inputTokens - read);
  if (model !== undefined)
    spent.nanoUsd += price(model, usage.inputTokens, usage.outputTokens, { read, write });
}

/** Charges requests whose answer was lost: the provider may have billed all that was reserved. */
export function chargeLost(
  spent: SessionState['budget']['spent'],
  times: number,
  reserved: { nanoUsd: number; tokens: number },
): void {
  spent.inputTokens += reserved.tokens * times;
  spent.nanoUsd += reserved.nanoUsd * times;
  spent.lostReplies += times;
  spent.lostNanoUsd += reserved.nanoUsd * times;
}
