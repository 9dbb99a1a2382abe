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
 * - `message`: equal calls in answer to one message of the user. That is the last message of the user in the transcript
 *   when the model asked for the call.
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
  /** Input tokens that the provider read from its cache. Default: `inputPerMillion`; a tenth of it for Anthropic. */
  cacheReadPerMillion?: number;
  /** Input tokens that the provider wrote to its cache. Default: `inputPerMillion`; 1.25 times it for Anthropic. */
  cacheWritePerMillion?: number;
}

/** One model of an agent's list. */
export interface ModelManifest {
  /** `provider:model`, for the record. */
  id: string;
  /**
   * The most tokens of one reply, including the reasoning that the model's client adds. The budget reserves them.
   */
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
  /** Whoever sent or edited messages of the session cannot approve. Absent: anybody can. */
  byAnother?: true;
  /** With `people` or `byAnother`: unverified names count, too. */
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

/** What a question accepts as its answer. */
export interface QuestionPolicy {
  /** JSON Schema of the answer. Absent: any text or JSON. */
  answer?: JsonObject;
  /** The answer if the question expires, or if a person approves it without an answer. */
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
  /** The task queue of its workers. Absent: the session's own task queue. */
  taskQueue?: string;
  /**
   * Set if it works in the background: what happens to it when the caller's task ends. Absent: the call waits for it.
   */
  background?: AtEnd;
}

/**
 * The edition of the manifests that this code writes. Newer code decides some things otherwise, and a session on record
 * must decide as it did: it has the edition of its manifest. See `src/session/edition.ts`.
 */
export const EDITION = 3;

/** An agent without its code. `digest` is over everything else. */
export interface Manifest {
  schema: 1;
  agent: string;
  digest: string;
  /** Empty if the instructions are a function of the context. */
  instructions: string;
  /** Set if the instructions are a function: the most bytes of the text that it returns. */
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
  /** Turns after which the session continues in a new run. Absent: it stays in one run. */
  runTurns?: number;
  /** A waiting session may continue in a new run, too. Absent: it does so only between turns. */
  runsAtRest?: true;
  /** A session that only reads may continue in a new run before its next reads. Absent: only when its run is full. */
  runsInReads?: true;
  /** JSON Schema of an answer. Absent: an answer is a text. */
  output?: JsonObject;
  /** What keeps prompts within the models' context windows. Absent: nothing does. */
  contextWindow?: ContextWindow;
  /** What is sent to webhooks. Absent: nothing. */
  notify?: NotifyPolicy;
  /** Limits of its sub-agents. Absent: those of {@link TREE_LIMIT}. */
  subAgents?: SubAgentLimits;
  /** Which decisions of newer code its sessions make: see {@link EDITION}. Absent: none of them. */
  edition?: number;
}

/** How many levels of sub-agents a tree may have, and how many sub-agents of one session may be open at a time. */
export interface SubAgentLimits {
  depth?: number;
  open?: number;
}

export interface ContextWindow {
  /** A prompt of this many tokens is compacted. Absent: only a prompt that a model refuses as too large. */
  compactAt?: number;
  /** Tokens of the last messages that stay as they are. */
  keep: number;
}

/**
 * - `approval`: a call waits for a decision.
 * - `unknown`: a call waits for a person to say what became of it, or its tool is missing.
 * - `wait`: the session waits: for its budget, a provider, its agent.
 * - `end`: the session has ended.
 */
export type NotifyEvent = 'approval' | 'unknown' | 'wait' | 'end';

/** Which notifications a session sends. */
export interface NotifyPolicy {
  events: NotifyEvent[];
  /** Notifications include the arguments of calls. */
  args?: true;
}

/** A definition that replaced another one while the session ran. At most 40 names are listed. */
export interface AgentChange {
  /** ISO 8601. */
  at: string;
  /** The number of turns before the change. */
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
