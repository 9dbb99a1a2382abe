/** An agent on a worker: its definition resolved against the worker's models, and its manifest. */

import type { LanguageModel } from 'ai';
import { messageOf, PerdureError } from '../contract/errors.ts';
import { defined, digestJson, type JsonObject, toJson } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import { assertSize, LIMIT } from '../contract/limits.ts';
import {
  EDITION,
  type Manifest,
  type ModelManifest,
  type ModelPrice,
  type NotifyPolicy,
  type QuestionPolicy,
  type ToolManifest,
} from '../contract/manifest.ts';
import { msToNumber } from '../temporal/sdk-time.ts';
import type { DefinedAgent } from './agent-options.ts';
import { contextWindowPart } from './context-window.ts';
import { checkedAgent } from './define-agent.ts';
import { type DefinedTool, scopeOf } from './define-tool.ts';
import { inputSchema } from './input-schema.ts';

/** Matches the provider name of Anthropic's models, however the client reaches them. */
export const ANTHROPIC: RegExp = /(^|\.)anthropic(\.|$)/;

const DEFAULTS = {
  maxOutputTokens: 4_096,
  instructionsBytes: 16_384,
  /** The client's default for thinking without a budget. */
  thinkingTokens: 1_024,
  timeoutMs: 60_000,
  settleMs: 5_000,
  maxAttempts: 3,
  loopLimit: 3,
  heartbeatMs: 10_000,
  ttlMs: 86_400_000,
  modelTimeoutMs: 120_000,
  modelCallMs: 900_000,
  runTurns: 50,
} as const;

/** Finds a model by its name. The AI SDK's provider registry has this shape. */
export interface ModelRegistry {
  languageModel(id: string): LanguageModel;
}

/** A language model as an object. */
export type Model = Exclude<LanguageModel, string>;

/** An agent as the activities use it. */
export interface AgentRuntime {
  readonly definition: DefinedAgent;
  readonly manifest: Manifest;
  readonly models: readonly Model[];
  /** The most tokens of one reply, as each model's client gets it. The manifest adds thinking tokens. */
  readonly maxOutputTokens: readonly number[];
  readonly modelTimeoutMs: number;
}

/**
 * Resolves a definition: names of models to models, schemas to JSON Schema, everything to a manifest.
 *
 * @param builtIn - the worker's own tools, which each agent gets
 * @param notify - what the agent's sessions report to the worker's webhooks
 * @throws PerdureError `INVALID_DEFINITION` for an unknown model name, for a schema without JSON Schema, and for
 * everything that defineAgent refuses, because the definition may be a changed copy.
 */
export async function resolveAgent(
  given: DefinedAgent,
  registry?: ModelRegistry,
  builtIn: Readonly<Record<string, DefinedTool>> = {},
  notify?: NotifyPolicy,
): Promise<AgentRuntime> {
  const definition = withTools(checkedAgent(given), builtIn);
  const models = definition.models.map(({ model }) => resolveModel(definition.name, model, registry));
  const maxOutputTokens = definition.models.map(
    ({ maxOutputTokens: own }) => own ?? definition.maxOutputTokens ?? DEFAULTS.maxOutputTokens,
  );
  const thoughts = thinkingTokens(definition.providerOptions);
  const tools: Record<string, ToolManifest> = {};
  for (const [name, tool] of Object.entries(definition.tools)) {
    tools[name] = await toolManifest(definition.name, name, tool);
  }
  const output =
    definition.output === undefined
      ? undefined
      : await schemaOf(definition.name, 'output', { inputSchema: definition.output });
  const body: Omit<Manifest, 'digest'> = {
    schema: 1,
    agent: definition.name,
    ...instructionsPart(definition),
    models: definition.models.map(({ price }, i): ModelManifest => {
      const model = models[i];
      return {
        id: `${model?.provider ?? ''}:${model?.modelId ?? ''}`,
        maxOutputTokens: (maxOutputTokens[i] ?? 0) + thoughts,
        price: price === undefined ? null : withCachePrices(price, model?.provider ?? ''),
      };
    }),
    tools,
    budget: definition.budget ?? {},
    loopLimit: definition.loopLimit ?? DEFAULTS.loopLimit,
    toolOrder: definition.toolOrder ?? 'ordered',
    plan: definition.plan ?? false,
    heartbeatMs: duration(definition.heartbeat, DEFAULTS.heartbeatMs),
    modelCallMs: duration(definition.modelCallTimeout, DEFAULTS.modelCallMs),
    ...(definition.runTurns === false
      ? {}
      : { runTurns: definition.runTurns ?? DEFAULTS.runTurns, runsAtRest: true, runsInReads: true }),
    ...defined({ output }),
    ...contextWindowPart(
      definition.contextWindow,
      models.map(({ modelId }, i) => ({ modelId, maxOutputTokens: maxOutputTokens[i] ?? 0 })),
    ),
    ...defined({ notify, subAgents: definition.subAgents }),
    edition: EDITION,
  };
  const json = toJson(body, `agent ${definition.name}`);
  assertSize(`the definition of agent ${definition.name}`, json, LIMIT.manifest);
  return {
    definition,
    manifest: { ...body, digest: shortDigest(digestJson(json)) },
    models,
    maxOutputTokens,
    modelTimeoutMs: duration(definition.modelTimeout, DEFAULTS.modelTimeoutMs),
  };
}

/**
 * Anthropic charges for writing to its cache, and a session writes each prompt to it. A cap on dollars must know that
 * price, so a definition without it gets Anthropic's ratios.
 */
function withCachePrices(price: ModelPrice, provider: string): ModelPrice {
  if (!ANTHROPIC.test(provider)) return price;
  const { inputPerMillion: input } = price;
  return { cacheReadPerMillion: input / 10, cacheWritePerMillion: input * 1.25, ...defined(price) };
}

/** Adds the worker's own tools. */
function withTools(definition: DefinedAgent, builtIn: Readonly<Record<string, DefinedTool>>): DefinedAgent {
  const taken = Object.keys(builtIn).find((name) => Object.hasOwn(definition.tools, name));
  if (taken !== undefined) {
    throw new PerdureError(
      'INVALID_DEFINITION',
      `agent ${definition.name}: tools.${taken} is the name of a built-in tool: rename it`,
    );
  }
  return { ...definition, tools: { ...definition.tools, ...builtIn } };
}

/** A function's text is only known at each model call. The budget counts its maximum. */
function instructionsPart({
  instructions,
  maxInstructionsBytes = DEFAULTS.instructionsBytes,
}: DefinedAgent): Pick<Manifest, 'instructions' | 'instructionsBytes'> {
  return typeof instructions === 'string'
    ? { instructions }
    : { instructions: '', instructionsBytes: maxInstructionsBytes };
}

/** A warning about tools without an `effect`, with the line to write, or `null`. */
export function plainToolsWarning({ name, tools }: DefinedAgent): string | null {
  const plain = Object.keys(tools).filter((toolName) => tools[toolName]?.perdure === 'plain');
  if (plain.length === 0) return null;
  return (
    `agent ${name}: the effect of ${plain.join(', ')} is not declared. Each call counts as a mutation of its own, and a lost ` +
    `call waits for a person. Add effects: { ${plain.map((toolName) => `${toolName}: 'read'`).join(', ')} } ` +
    "(or 'idempotent', or 'mutate') in defineAgent"
  );
}

/**
 * Thinking tokens that the clients of Anthropic (`thinking`) and Bedrock (`reasoningConfig`) add to a reply's tokens.
 * It matches the options by content, because these providers have several names. The reserve may be too large, never
 * too small.
 */
function thinkingTokens(options: DefinedAgent['providerOptions'] = {}): number {
  const budgets = Object.values(options).flatMap(({ thinking, reasoningConfig }) =>
    [thinking, reasoningConfig].map((given) => {
      if (typeof given !== 'object' || given === null || Array.isArray(given)) return 0;
      const { type, budgetTokens = DEFAULTS.thinkingTokens } = given;
      return type === 'enabled' && typeof budgetTokens === 'number' && Number.isSafeInteger(budgetTokens)
        ? budgetTokens
        : 0;
    }),
  );
  return Math.max(0, ...budgets);
}

function duration(value: Parameters<typeof msToNumber>[0] | undefined, fallback: number): number {
  return value === undefined ? fallback : msToNumber(value);
}

function resolveModel(agent: string, model: LanguageModel, registry: ModelRegistry | undefined): Model {
  if (typeof model !== 'string') return model;
  let found: LanguageModel | undefined;
  let cause: unknown;
  try {
    found = registry?.languageModel(model);
  } catch (error) {
    cause = error;
  }
  if (found !== undefined && typeof found !== 'string') return found;
  throw new PerdureError(
    'INVALID_DEFINITION',
    `agent ${agent}: model '${model}' is not in the worker's models. Pass createWorker({ models: createProviderRegistry({ … }) }), ` +
      'or set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint that is compatible with OpenAI',
    { cause },
  );
}

async function toolManifest(agent: string, name: string, tool: DefinedTool): Promise<ToolManifest> {
  const effect = tool.effect ?? 'mutate';
  return {
    name,
    description: tool.description ?? '',
    inputSchema: await schemaOf(agent, `tools.${name}`, tool),
    effect,
    scope: scopeOf(tool),
    ttlMs: duration(typeof tool.idempotency === 'object' ? tool.idempotency.ttl : undefined, DEFAULTS.ttlMs),
    verify: tool.verify !== undefined,
    timeoutMs: duration(tool.timeout, DEFAULTS.timeoutMs),
    settleMs: duration(tool.settle, DEFAULTS.settleMs),
    maxAttempts: tool.maxAttempts ?? DEFAULTS.maxAttempts,
    approval: {
      expiresMs: tool.approval?.expires === undefined ? null : msToNumber(tool.approval.expires),
      onExpiry: tool.approval?.onExpiry ?? 'reject',
      ...defined({
        people: tool.approval?.people,
        byAnother: tool.approval?.byAnother,
        unverified: tool.approval?.unverified,
      }),
    },
    ...defined({ builtIn: tool.builtIn }),
    ...(tool.question === undefined ? {} : { question: await questionPolicy(agent, name, tool.question) }),
    ...(tool.compensate === undefined
      ? {}
      : {
          compensate: {
            verify: tool.compensate.verify !== undefined,
            ...(tool.compensate.needsApproval === false ? { unasked: true as const } : {}),
          },
        }),
    ...(tool.agent === undefined
      ? {}
      : {
          agent: {
            name: tool.agent.name,
            ...defined({ taskQueue: tool.agent.taskQueue, background: tool.agent.background }),
          },
        }),
  };
}

async function questionPolicy(
  agent: string,
  name: string,
  { answer, otherwise }: NonNullable<DefinedTool['question']>,
): Promise<QuestionPolicy> {
  const schema =
    answer === undefined ? undefined : await schemaOf(agent, `tools.${name}.answer`, { inputSchema: answer });
  return defined({ answer: schema, otherwise });
}

async function schemaOf(
  agent: string,
  name: string,
  tool: Parameters<typeof inputSchema>[0],
): Promise<JsonObject> {
  try {
    return await inputSchema(tool);
  } catch (error) {
    const message = messageOf(error);
    throw new PerdureError('INVALID_DEFINITION', `agent ${agent}: ${name}: ${message}`, {
      cause: error,
    });
  }
}
