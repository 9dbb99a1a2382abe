/** The state of a session: the same JSON in the live workflow, in a query and in a checkpoint. */
import type { Reminder } from './built-in.ts';
import type { Actor, ToolCall } from './calls.ts';
import type { EditInput } from './edit.ts';
import type { JsonObject } from './json.ts';
import type { AgentChange, BudgetLimits, Manifest } from './manifest.ts';
import type { Message, MessageBlock, Position } from './messages.ts';
import type { NextStep } from './next-step.ts';
import type { CarriedEffect, Origin } from './origin.ts';
import type { Past } from './past.ts';
import type { PoolShare } from './pool.ts';
import type { Limited } from './rates.ts';
import type { AgentReport, Child, ParentLink, TreeUsage } from './tree.ts';
import type { Undo, UndoInput } from './undo.ts';

/**
 * `chat` waits for the next message after an answer. `task` ends with it. `effect` has no model: it makes one call of a
 * `global` tool, and answers equal calls of any session for its time to live.
 */
export type SessionMode = 'chat' | 'task' | 'effect';

export type SessionStatus =
  | { kind: 'active' }
  | { kind: 'completed'; at: string; text: string }
  | { kind: 'failed'; at: string; message: string }
  | { kind: 'cancelled'; at: string; by: Actor; reason: string };

/** Why a session does not continue by itself. */
export type WaitReason =
  | 'agent_unavailable'
  /** The context does not fit the schema of the agent or of one of its tools. */
  | 'context_invalid'
  /** The agent's instructions are a function, which gave no text. */
  | 'instructions_failed'
  | 'provider_unavailable'
  | 'provider_rejected'
  | 'invalid_response'
  /** The prompt is larger than the model's context window, and cannot be compacted. */
  | 'context_window'
  | 'history_unreadable'
  | 'budget'
  | 'loop'
  | 'history_limit';

export interface Wait {
  reason: WaitReason;
  message: string;
  /** ISO 8601. */
  since: string;
  next: NextStep;
}

/** What the session is doing. */
export type Phase =
  | 'starting'
  | 'idle'
  | 'thinking'
  | 'acting'
  | 'approval'
  | 'unknown_effect'
  | 'waiting'
  | 'paused'
  | 'cancelling'
  | 'closed';

/** Phases in which nothing happens without a person. */
export const WAITING_PHASES: readonly Phase[] = ['approval', 'unknown_effect', 'waiting', 'paused'];

/** Whether nothing happens without a person. */
export function needsPerson(phase: string): boolean {
  return WAITING_PHASES.some((waiting) => waiting === phase);
}

/** Money is counted in whole billionths of a US dollar. */
export const NANO_PER_USD = 1_000_000_000;

/** What a session has spent. */
export interface Spent {
  turns: number;
  toolCalls: number;
  inputTokens: number;
  outputTokens: number;
  /** Billionths of a US dollar, whole. */
  nanoUsd: number;
  /** Replies that were charged but lost: how many, and their part of `nanoUsd`. */
  lostReplies: number;
  lostNanoUsd: number;
  activeMs: number;
}

/** What was spent, what calls in flight reserve, and the caps. */
export interface Budget {
  limits: BudgetLimits;
  spent: Spent;
  reserved: { nanoUsd: number; tokens: number };
}

/** One step of a plan. The session verifies its completion: evidence names completed calls. */
export interface PlanStep {
  id: string;
  title: string;
  postconditions: string[];
  evidence: { postcondition: number; tool: string; call_id: string }[];
  status: 'pending' | 'in_progress' | 'done';
}

/** A message that is not in the transcript yet. */
export interface QueuedMessage {
  id: string;
  text: string;
  /** The whole message, if it has files. */
  blocks?: MessageBlock[];
  pin?: true;
  by: Actor;
  verified?: true;
  at: string;
  /** The last change of its text, and who made it. */
  edited?: { by: Actor; at: string };
  /** An earlier run may have taken this id: the session looks it up before it takes the message. */
  check?: true;
  /** It gets a side answer while calls are open. Otherwise the next turn takes it, like any other message. */
  aside?: true;
  /** How often its side answer was lost. */
  lost?: number;
  /** The session wrote it: it reports on a sub-agent. */
  report?: AgentReport;
}

/** A command in flight. */
export interface InFlight {
  seq: number;
  kind:
    | 'load'
    | 'describe'
    | 'model'
    | 'reads'
    | 'tool'
    | 'attach'
    | 'report'
    | 'verify'
    | 'prepare'
    | 'settle'
    | 'backoff'
    | 'model_backoff'
    | 'approval_expiry'
    | 'recheck'
    | 'agent_recheck'
    | 'rate_recheck'
    | 'ttl'
    | 'sleep'
    | 'reminder'
    | 'storePast'
    | 'takenIds'
    | 'notify'
    | 'aside'
    | 'draw'
    | 'steer'
    | 'pool_recheck'
    | 'child_recheck';
  callId?: string;
  /** Timers only, ISO 8601: when the timer fires. */
  until?: string;
  /** The reads that the activity runs. */
  reads?: string[];
  cancelled?: true;
  /** What the budget reserves for it. */
  reserved?: { nanoUsd: number; tokens: number };
  /** `attach` only: the effect has reported news since the command was issued. */
  told?: true;
  /** The message that a side answer is for. */
  messageId?: string;
  /** `draw` only: it gives back and asks for nothing. */
  gives?: true;
  /** Model calls only: the limiter's signal came before the result. */
  turnCame?: true;
  /** A closing model call without tools. */
  summarize?: true;
  /** A model call that summarizes the older messages. */
  compact?: true;
}

/** Something people may want to see: bad signals, manifest changes, fallbacks. */
export interface Notice {
  at: string;
  kind: string;
  message: string;
}

export interface SessionState {
  schema: 1;
  sessionId: string;
  /** The session's idempotency keys are derived from it, see `effectNamespace`. */
  namespace: string;
  runId: string;
  agent: string;
  /** The data for its tools that the session was started with. `tenant` in it names the tenant. */
  context: JsonObject | null;
  mode: SessionMode;
  createdAt: string;
  status: SessionStatus;
  manifest: Manifest | null;
  /** The last ten changes of the manifest. Absent before the first. */
  agentChanges?: AgentChange[];
  /**
   * The search attributes of ours that the session writes: the server fails a workflow task that writes one it does not
   * know.
   */
  searchAttributes: string[];
  turn: number;
  /** Messages and calls of runs before this one are in {@link past}. */
  transcript: Message[];
  position: Position;
  /** What has left the run. Absent when nothing has. */
  past?: Past;
  /** The session continues in a new run. `next`: as soon as no activity is in flight. `now`: it issues nothing more. */
  continuing?: 'next' | 'now';
  /** The turn before which it does not try again to store its past. */
  notBeforeTurn?: number;
  /**
   * Bytes of the messages that the model sees. `measured`: the part of them whose tokens the last reply's usage
   * counted.
   */
  promptBytes: number;
  measured: { bytes: number; tokens: number } | null;
  /** Bytes of the pinned messages. Absent before the first. */
  pinnedBytes?: number;
  /** The messages with lower indexes are summarized: the model sees the last summary in their place. */
  summarized?: number;
  /** `wanted`: the model refused the prompt as too large. `tried`: it was compacted since the last reply. */
  compaction?: 'wanted' | 'tried';
  inbox: QueuedMessage[];
  /** The last messages that were withdrawn before the model saw them. */
  withdrawn?: { id: string; by: Actor; at: string }[];
  /** Names of the people who have sent or edited messages, here or in the sessions above. Absent before the first. */
  authors?: string[];
  /** Number of the user's message that is being answered. 0 before the first. */
  message: number;
  /** The highest number of a message, also over rewinds: no number is used twice. */
  messagesTaken: number;
  calls: ToolCall[];
  /** Ids of the present reply's calls, in the model's order. Empty between replies. */
  batch: string[];
  /** A message asked to end the turn early. */
  interrupted: boolean;
  inFlight: InFlight[];
  /** Timers of the previous run that are not started again yet. */
  timers?: { kind: InFlight['kind']; until: string; callId?: string }[];
  /** Number of the last command. */
  seq: number;
  /** ISO 8601: since when something is in flight that counts as active time. */
  activeSince: string | null;
  budget: Budget;
  /** The session's share of the pool that it draws from. Absent: it has no pool. */
  pool?: PoolShare;
  plan: PlanStep[];
  scratchpadRoot: string | null;
  /** The files of the model's scratchpad by path. Absent: it has written none. */
  scratchpad?: { [path: string]: string };
  /** Messages that the session will send itself, the next one first. Absent: none. */
  reminders?: Reminder[];
  paused: { by: Actor; at: string; reason: string; requestedNow: boolean } | null;
  /** `by`: who paused it. `resumedBy` is absent while a pause lasts, and in pauses that earlier versions carried on. */
  pauses: { pausedAt: string; resumedAt: string | null; by: Actor; resumedBy?: Actor }[];
  wait: Wait | null;
  /** It waits for the rate limit of its model's key. */
  limited?: Limited;
  /** It waits for a worker that has its agent. `checks`: how often it has looked. `due`: look now. */
  away?: { checks: number; due?: true };
  cancelling: { by: Actor; at: string; reason: string } | null;
  finishing: boolean;
  /** The last request to undo its effects. Absent: nobody asked for an undo. */
  undo?: Undo;
  /** The call of another session that has started it. Absent: no call did. */
  parent?: ParentLink;
  /** Its sub-agents: the open ones, and those that have ended in this run. Absent before the first. */
  children?: Child[];
  /** What the sub-agents used that have left with earlier runs. Absent: nothing. */
  childrenUsed?: TreeUsage;
  /** Set on a sub-agent that has begun to report: how it ends. */
  ending?: 'completed' | 'cancelled';
  /** The checkpoint that it started from. `loading` holds the parts of that checkpoint that have arrived. */
  origin: Origin | null;
  loading: { parts: string[]; edits: EditInput | null; undo?: UndoInput; cancel?: UndoInput } | null;
  /** Effects that happened after a rewind's checkpoint. Their records answer calls with their keys. */
  carried: CarriedEffect[];
  /** The session issues nothing more, because a successor takes over. `resume` unseals it. */
  sealed: { by: Actor; at: string; reason: string } | null;
  loop: { digest: string; count: number };
  /**
   * Of an `effect`: the `session/call` that asked first, its time to live, and the calls that wait, with what they
   * know.
   */
  effect: {
    requestedBy: string;
    ttlMs: number;
    waiters: { sessionId: string; callId: string; told?: 'person' | 'outcome' }[];
  } | null;
  /** Answers in a row that did not fit the agent's `output` schema. Absent: none. */
  misfits?: number;
  /** Failed model calls in a row that are repeated automatically. */
  modelFailures: number;
  /** Workers lost in a row in the present model call, and whether the session waits before it asks again. */
  workersLost: number;
  resting: boolean;
  /** Index of the model that is asked first. The models before it have failed at a cost in this turn. */
  fromModel: number;
  /** By message: the model that wrote it, if not the first of the list. */
  answeredBy?: { [messageId: string]: string };
  /**
   * By message: the start of the digest of the instructions that it answers, when they are a function of the context.
   */
  instructedBy?: { [messageId: string]: string };
  /** By message: why the model stopped, if not normally. */
  finishReasons?: { [messageId: string]: string };
  notices: Notice[];
  /** Keys of the notifications that were sent and still hold. */
  notified?: string[];
}

export type EffectRecord = NonNullable<SessionState['effect']>;
