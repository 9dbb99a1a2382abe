/** An agent as data. It enters the session at its start and whenever the worker's definition has changed. */
import type { BuiltIn } from './built-in.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { AtEnd } from './tree.ts';

/**
 * What a call of a tool does to the world.
 * - `read`: nothing; calls run in parallel and are repeated freely.
 * - `idempotent`: something that is safe to repeat with the same arguments.
 * - `mutate`: something that must not happen twice; guarded by the effect protocol.
 */
export type Effect = 'read' | 'idempotent' | 'mutate';

/**
 * Which equal calls are one effect. The first is executed; the others are answered from its record.
 * - `call`: none. Each call is an effect of its own.
 * - `message`: equal calls in answer to one message of the user, which is the last one that the session had taken into
 *   the transcript when the model asked for the call.
 * - `session`: all equal calls of the session.
 * - `global`: all equal calls of all sessions, for the tool's time to live.
 */
export type IdempotencyScope = 'call' | 'message' | 'session' | 'global';

/** Caps on what a session may spend. Absent means no cap. */
export interface BudgetLimits {
  /** Model calls. */
  turns?: number;
  /** Tool calls that were dispatched. */
  toolCalls?: number;
  /** Input plus output tokens. */
  tokens?: number;
  /** US dollars. Needs a price for each of the agent's models. */
  usd?: number;
  /** Milliseconds in which a model or tool call was in flight; waiting for people is free. */
  activeMs?: number;
}

/** Prices in US dollars for a million tokens, given with the model. */
export interface ModelPrice {
  inputPerMillion: number;
  outputPerMillion: number;
  /** Input tokens that the provider read from its cache. Default: `inputPerMillion`. */
  cacheReadPerMillion?: number;
  /** Input tokens that the provider wrote to its cache. Default: `inputPerMillion`. */
  cacheWritePerMillion?: number;
}

/** One model of an agent's list. */
export interface ModelManifest {
  /** `provider:model`, for the record. */
  id: string;
  /** The most tokens of one reply, with the reasoning budget that the model's client adds. The budget reserves these. */
  maxOutputTokens: number;
  price: ModelPrice | null;
}

/** What happens to an approval that nobody decides. */
export interface ApprovalPolicy {
  /** Milliseconds until it expires; `null` waits for ever. */
  expiresMs: number | null;
  onExpiry: 'approve' | 'reject';
  /** How many people must approve. Absent: one. */
  people?: number;
  /** Nobody approves who has sent or edited messages of the session. Absent: anybody may. */
  byAnother?: true;
  /** With one of both: names that nobody has verified count, too. */
  unverified?: true;
}

export interface ToolManifest {
  name: string;
  description: string;
  /** JSON Schema (draft 7 or later) of the arguments. */
  inputSchema: JsonObject;
  effect: Effect;
  scope: IdempotencyScope;
  /** How long after its end a `global` effect answers equal calls, in milliseconds. */
  ttlMs: number;
  /** Whether the tool can verify a lost call. */
  verify: boolean;
  /** How long one attempt may take, in milliseconds. */
  timeoutMs: number;
  /** How long after its end a lost attempt may still take effect, in milliseconds. */
  settleMs: number;
  /** The most dispatches (`mutate`) or attempts (`read`, `idempotent`) of one call. */
  maxAttempts: number;
  approval: ApprovalPolicy;
  /** Another agent answers its calls, in a session of its own. Absent: the tool itself does. */
  agent?: AgentPolicy;
  /** Its calls are questions to a person, who answers with `respond`. Absent: they are not. */
  question?: QuestionPolicy;
  /** The session answers its calls itself. Absent: a worker runs them. */
  builtIn?: BuiltIn;
  /** How its effects are undone. Absent: only people can undo them. */
  compensate?: CompensationPolicy;
}

/** What a question of a tool takes as its answer. */
export interface QuestionPolicy {
  /** JSON Schema of the answer. Absent: any text or JSON. */
  answer?: JsonObject;
  /** The answer when a person approves the question instead, or when it expires. */
  otherwise?: JsonValue;
}

export interface CompensationPolicy {
  /** Whether the tool can verify a lost compensation. */
  verify: boolean;
  /** It runs without a person's approval. Absent: a person approves each. */
  unasked?: true;
}

/** The agent behind a tool. */
export interface AgentPolicy {
  name: string;
  /** Of its workers. Absent: the session's own. */
  taskQueue?: string;
  /** It works in the background, and this happens to it when the caller's task ends. Absent: the call waits for it. */
  background?: AtEnd;
}

/** An agent without its code. `digest` is over everything else. */
export interface Manifest {
  schema: 1;
  agent: string;
  digest: string;
  /** Empty of instructions that are a function of the context. */
  instructions: string;
  /** Of instructions that are a function: the most bytes of their text. */
  instructionsBytes?: number;
  models: ModelManifest[];
  tools: { [name: string]: ToolManifest };
  budget: BudgetLimits;
  /** Equal calls in a row after which the session waits for a person. */
  loopLimit: number;
  /** `ordered`: reads in parallel, all else one after the other. `parallel`: all at once. */
  toolOrder: 'ordered' | 'parallel';
  /** Whether the model gets the built-in `update_plan` tool. */
  plan: boolean;
  /** Milliseconds without a heartbeat after which a call counts as lost. */
  heartbeatMs: number;
  /** How long one model call may take in all, in milliseconds. */
  modelCallMs: number;
  /** Turns after which the session goes on in a new run. Absent: it stays in one. */
  runTurns?: number;
  /** A session that waits may go on in a new run, too. Absent: it does so between turns only. */
  runsAtRest?: true;
  /** A session that only reads may do so before its next reads, too. Absent: it does so when its run is full. */
  runsInReads?: true;
  /** JSON Schema of an answer. Absent: an answer is a text. */
  output?: JsonObject;
  /** What keeps prompts within the models' context windows. Absent: nothing does. */
  contextWindow?: ContextWindow;
  /** What is told by webhooks. Absent: nothing is. */
  notify?: NotifyPolicy;
  /** Limits of its sub-agents. Absent: those of {@link TREE_LIMIT}. */
  subAgents?: SubAgentLimits;
}

/** How deep a tree of agents may get below its root, and how many sub-agents of one session may be open at a time. */
export interface SubAgentLimits {
  depth?: number;
  open?: number;
}

export interface ContextWindow {
  /** Tokens of a prompt from which it is compacted. Absent: only when a model refuses it. */
  compactAt?: number;
  /** Tokens of the last messages that stay as they are. */
  keep: number;
}

/**
 * - `approval`: a call waits for a decision.
 * - `unknown`: a call waits for a person who says what became of it, or its tool is missing.
 * - `wait`: the session waits: for its budget, a provider, its agent.
 * - `end`: the session has ended.
 */
export type NotifyEvent = 'approval' | 'unknown' | 'wait' | 'end';

/** What the manifest says of notifications. Without it, a session sends none. */
export interface NotifyPolicy {
  events: NotifyEvent[];
  /** Arguments of calls go along. */
  args?: true;
}

/** A definition that replaced another one while the session ran. At most 40 names are listed. */
export interface AgentChange {
  /** ISO 8601. */
  at: string;
  /** The session's turns before it. */
  turn: number;
  /** Digest of the former definition. */
  from: string;
  /** Digest of the new definition. */
  to: string;
  /** What differs, such as `instructions`, `models`, `budget.usd` or `tools.refund.inputSchema`. */
  changed: string[];
  addedTools: string[];
  removedTools: string[];
  /** How many names are not listed. */
  more?: number;
}
