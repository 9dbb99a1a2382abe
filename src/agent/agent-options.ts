/** The options of an agent. */
import type { SharedV3ProviderOptions } from '@ai-sdk/provider';
import type { Duration } from '@temporalio/common';
import type { FlexibleSchema, LanguageModel, Tool } from 'ai';
import type { JsonObject } from '../contract/json.ts';
import type { BudgetLimits, ModelPrice, SubAgentLimits } from '../contract/manifest.ts';
import type { ContextWindowOptions } from './context-window.ts';
import type { DefinedTool, ToolEffect } from './define-tool.ts';

/** A model of an agent: an AI SDK model, or `provider:model` in the worker's registry. A `usd` cap needs a price. */
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
  /** One model, or several in order. When a model is down or refuses, the next one is asked. */
  model: ModelChoice | readonly ModelChoice[];
  /**
   * What the model must do: a text, or a function of the session's context that returns it. The worker calls the
   * function for each model call. It has five seconds. If it throws or returns no text, the session waits and says why;
   * `resume` calls it again. A replay does not call it.
   */
  instructions: string | ((options: { context: CONTEXT }) => string | PromiseLike<string>);
  /**
   * The most bytes that an `instructions` function may return. Default: 16,384. Under a cap on tokens or dollars, each
   * model call reserves that many tokens.
   */
  maxInstructionsBytes?: number;
  /**
   * The schema of a session's context, which is what the application knows about the session's user:
   * `z.object({ tenant: z.string(), userId: z.string() })`. Tools get the context, the model does not. A session whose
   * context does not fit waits, and names the field. So does one whose context takes over five seconds to check. The
   * field `tenant` must be a string.
   */
  context?: FlexibleSchema<CONTEXT>;
  /**
   * Tools by name. A plain AI SDK `tool()` does not declare its effect: each of its calls counts as a mutation of its
   * own, and a lost call waits for a person. Declare it in `effects`.
   */
  tools?: Readonly<Record<string, AnyTool>>;
  /** The effects of imported tools, by the tool's name: `{ searchOrders: 'read' }`. */
  effects?: Readonly<Record<string, ToolEffect>>;
  /**
   * The schema of an answer: `z.object({ total: z.number() })`. The model is told to answer with JSON that fits, and
   * the provider enforces it where it can. The worker checks each answer. If an answer does not fit, the model is asked
   * again, at most twice; then the session waits. The checked value is in `session.result()` and in `state()`. Default:
   * an answer is a text.
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
  /** The heartbeat time-out: after so long without a heartbeat, a call's worker counts as lost. Default: 10 seconds. */
  heartbeat?: Duration;
  /** How long a provider may send nothing before the request counts as lost. Default: 2 minutes. */
  modelTimeout?: Duration;
  /**
   * How long one model call may take in total, whatever the provider sends. Default: 15 minutes. Then the request
   * counts as lost: it is charged, because it may have been billed, and repeated.
   */
  modelCallTimeout?: Duration;
  /**
   * After how many turns a session goes on in a new run of its workflow. It does so earlier when its history has a
   * megabyte or 3,000 events. The past is stored beside the session. Default: 50. `false`: the session stays in one
   * run, and waits when the history has 15,000 events.
   */
  runTurns?: number | false;
  /**
   * How a session stays within the model's context window: before a prompt gets too large, the model summarizes the
   * older messages. Default: on. `false`: never; a prompt that is too large is refused by the provider, and the session
   * waits.
   */
  contextWindow?: ContextWindowOptions | false;
  /**
   * Limits of its sub-agents, see {@link agentTool}: how deep agents may be nested below the root (default: 5), and how
   * many sub-agents of one session may be open at a time (default: 10). Further ones wait.
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
  /** Why a context does not fit this agent and its tools, with the field, or `null`. */
  contextProblem: (
    this: DefinedAgent,
    context: JsonObject | undefined,
  ) => Promise<{ field: string; problem: string; message: string } | null>;
}
