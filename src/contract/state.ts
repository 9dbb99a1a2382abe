/** The state of a session: the same JSON in the live workflow, in a query and in a checkpoint. */
import type { Actor, ToolCall } from './calls.ts';
import type { EditInput } from './edit.ts';
import type { JsonObject } from './json.ts';
import type { BudgetLimits, Manifest } from './manifest.ts';
import type { Message, Position } from './messages.ts';
import type { NextStep } from './next-step.ts';
import type { CarriedEffect, Origin } from './origin.ts';

/**
 * `chat` waits for the next message after an answer; `task` ends with it. `effect` has no model: it makes one
 * call of a tool with scope `global`, and answers equal calls of any session until its time to live is over.
 */
export type SessionMode = 'chat' | 'task' | 'effect';

/** The durable status of a session. */
export type SessionStatus =
  | { kind: 'active' }
  | { kind: 'completed'; at: string; text: string }
  | { kind: 'failed'; at: string; message: string }
  | { kind: 'cancelled'; at: string; by: Actor; reason: string };

/** Why a session does not go on by itself. */
export type WaitReason =
  | 'agent_unavailable'
  /** The context does not fit the schema of the agent or of one of its tools. */
  | 'context_invalid'
  | 'provider_unavailable'
  | 'provider_rejected'
  | 'invalid_response'
  | 'history_unreadable'
  | 'budget'
  | 'loop'
  | 'history_limit';

/** A stop that needs somebody. */
export interface Wait {
  reason: WaitReason;
  message: string;
  /** ISO 8601. */
  since: string;
  next: NextStep;
}

/** What the session is doing, for people and programs to see. */
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

/** What a session has spent, derived from its history. */
export interface Spent {
  turns: number;
  toolCalls: number;
  inputTokens: number;
  outputTokens: number;
  /** Billionths of a US dollar, whole. */
  nanoUsd: number;
  /** Of these, what replies were charged that were lost after their request: how many, and billionths of a US dollar. */
  lostReplies: number;
  lostNanoUsd: number;
  activeMs: number;
}

/** Budget: what was spent, what is reserved for calls in flight, and the caps. */
export interface Budget {
  limits: BudgetLimits;
  spent: Spent;
  reserved: { nanoUsd: number; tokens: number };
}

/** One step of a plan. Completion is verified by the session: evidence names calls that completed. */
export interface PlanStep {
  id: string;
  title: string;
  postconditions: string[];
  evidence: { postcondition: number; tool: string; call_id: string }[];
  status: 'pending' | 'in_progress' | 'done';
}

/** A message that has not been taken into the transcript yet. */
export interface QueuedMessage {
  id: string;
  text: string;
  by: Actor;
  at: string;
}

/** Something that has been asked of the world and has not been answered. */
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
    | 'ttl';
  callId?: string;
  /** The reads that the activity runs. */
  reads?: string[];
  /** Asked to stop. */
  cancelled?: true;
  /** What is reserved for it. */
  reserved?: { nanoUsd: number; tokens: number };
  /** Of an `attach`: the effect has told since that it has news. */
  told?: true;
  /** A model call without tools that closes the session. */
  summarize?: true;
}

/** Something the session noticed and people may want to see: bad signals, manifest changes, fallbacks. */
export interface Notice {
  at: string;
  kind: string;
  message: string;
}

/** The whole state of a session. */
export interface SessionState {
  schema: 1;
  sessionId: string;
  /** The idempotency keys are derived from it, see `effectNamespace`. */
  namespace: string;
  runId: string;
  agent: string;
  /** What the session was started with for its tools; `tenant` in it is for whom. */
  context: JsonObject | null;
  mode: SessionMode;
  createdAt: string;
  status: SessionStatus;
  manifest: Manifest | null;
  /** The search attributes of ours that the server knows; others are left out, for an unknown one stops a session. */
  searchAttributes: string[];
  turn: number;
  transcript: Message[];
  position: Position;
  /** Bytes of the transcript's JSON, and of its part that the last reply's usage has measured. */
  promptBytes: number;
  measured: { bytes: number; tokens: number } | null;
  inbox: QueuedMessage[];
  /** Number of the user's message that is being answered: the last one that was taken. 0 before the first. */
  message: number;
  /** The highest number that a message was given, in runs that a rewind has left too: no number is given twice. */
  messagesTaken: number;
  calls: ToolCall[];
  /** Ids of the calls of the present batch, in the model's order; empty between batches. */
  batch: string[];
  /** A message wants the present turn to end early. */
  interrupted: boolean;
  inFlight: InFlight[];
  /** Number of the last command. */
  seq: number;
  /** ISO 8601: since when something is in flight that counts as active time. */
  activeSince: string | null;
  budget: Budget;
  plan: PlanStep[];
  scratchpadRoot: string | null;
  paused: { by: Actor; at: string; reason: string; requestedNow: boolean } | null;
  pauses: { pausedAt: string; resumedAt: string | null; by: Actor }[];
  wait: Wait | null;
  cancelling: { by: Actor; at: string; reason: string } | null;
  finishing: boolean;
  /** Equal calls in a row, for loop detection. */
  /** Where it comes from, when it did not start empty; `loading` holds what of it has arrived. */
  origin: Origin | null;
  loading: { parts: string[]; edits: EditInput | null } | null;
  /** Effects after the checkpoint of a rewind: they answer their keys. */
  carried: CarriedEffect[];
  /** Nothing is issued any more, for a successor takes over; `resume` takes it back. */
  sealed: { by: Actor; at: string; reason: string } | null;
  loop: { digest: string; count: number };
  /**
   * Of an `effect`: the `session/call` that asked first, how long its record is kept, and the calls that wait for it,
   * with what each was told: that a person is needed, or the outcome.
   */
  effect: {
    requestedBy: string;
    ttlMs: number;
    waiters: { sessionId: string; callId: string; told?: 'person' | 'outcome' }[];
  } | null;
  /** Failed model calls in a row that are repeated without a person. */
  modelFailures: number;
  /** Workers lost in a row in the present model call, and whether the session rests before it asks again. */
  workersLost: number;
  resting: boolean;
  /** Index of the model that is asked first: those before it have failed in this turn at a cost. */
  fromModel: number;
  /** By message: the id of the model that wrote it, where that is not the first of the agent's list. */
  answeredBy?: { [messageId: string]: string };
  /** By message: why the model ended it, where that is not that it had answered or called tools. */
  finishReasons?: { [messageId: string]: string };
  notices: Notice[];
}

/** What the workflow of a global effect knows beside its call. */
export type EffectRecord = NonNullable<SessionState['effect']>;
