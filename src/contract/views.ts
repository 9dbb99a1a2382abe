/** The answers of queries: plain JSON, bounded in size. */
import type { Reminder, Sleeping } from './built-in.ts';
import type { CallStatus, DecisionRecord, ToolCall } from './calls.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { AgentChange, BudgetLimits, Effect, QuestionPolicy, ToolManifest } from './manifest.ts';
import type { Message } from './messages.ts';
import type { NextStep } from './next-step.ts';
import type { PoolAmounts } from './pool.ts';
import type { Limited } from './rates.ts';
import type { Notice, Phase, PlanStep, SessionMode, SessionStatus, Spent, Wait } from './state.ts';
import type { ContentRef } from './thread.ts';
import type { Child, ParentLink } from './tree.ts';

/** A session in a list. */
export interface SessionSummary {
  id: string;
  agent: string | null;
  /**
   * Running: `active`, `approval`, `unknown_effect`, `waiting` or `paused`, or `unknown` before a worker has taken it
   * up or without registered search attributes. Closed: `completed`, `cancelled`, or how it was ended, such as
   * `terminated`.
   */
  status: string;
  tenant: string | null;
  /** The task queue whose workers serve it. */
  taskQueue: string;
  startedAt: string;
  closedAt: string | null;
}

/** A session at a glance, without transcript and call log. */
export interface SessionView {
  sessionId: string;
  runId: string;
  agent: string;
  context: JsonObject | null;
  mode: SessionMode;
  /** The call of another session that has started it. Absent: no call did. */
  parent?: ParentLink;
  /** Its sub-agents: the open ones, and those that have ended in this run. Absent: none. */
  children?: Pick<Child, 'sessionId' | 'agent' | 'callId'>[];
  /** Of mode `effect`: the `session/call` that asked first, and its time to live. */
  effect: { requestedBy: string; ttlMs: number } | null;
  createdAt: string;
  /**
   * `ended`: the run did not end itself. Somebody terminated it in Temporal, it timed out, or the like; `run` is
   * Temporal's word for it. Only the client and the HTTP API say so, not the session's query.
   */
  status: SessionStatus | { kind: 'ended'; at: string | null; run: string; reason: string };
  phase: Phase;
  turn: number;
  messages: number;
  queued: number;
  calls: number;
  /** Calls that wait for a person. */
  pending: PendingCall[];
  wait: Wait | null;
  /** It waits for the rate limit of its model's key, and goes on by itself. */
  limited?: Limited;
  paused: { by: string; at: string; reason: string } | null;
  budget: BudgetView;
  plan: PlanStep[];
  scratchpadRoot: string | null;
  /** The files of the model's scratchpad. Their text is in `snapshot()`. */
  scratchpad: { path: string; bytes: number }[];
  /** Calls that wait for a time. */
  sleeping: Sleeping[];
  /** Messages that the session will send itself, the next one first. */
  reminders: Reminder[];
  manifestDigest: string | null;
  /** The last ten changes of the agent's definition, oldest first. */
  agentChanges: AgentChange[];
  models: string[];
  notices: Notice[];
  /** The text of the model's last answer, at most 4,000 characters. */
  lastText: string;
  /** The value of that answer. Absent unless the agent has an `output` schema that it fits. */
  output?: JsonValue;
}

/** A call that waits for a person. */
export interface PendingCall {
  callId: string;
  tool: string;
  args: JsonValue;
  argsDigest: string;
  /** The number of its last dispatch; 0 if it has none. */
  dispatchNo: number;
  idempotencyKey: string;
  /** What the call does to the world. Absent in the answer of an older worker. */
  effect?: Effect;
  /** Set on a compensation: the id of the call that it undoes. `args` hold that call's arguments and output. */
  compensates?: string;
  /** ISO 8601: when the model asked for the call. Absent when that message is in an earlier run. */
  askedAt?: string;
  status: Extract<CallStatus, { kind: 'approval' | 'unknown' | 'stuck' | 'awaiting' }>;
  decision: DecisionRecord | null;
  /** Set if the approval takes another person or several people. */
  needs?: ApprovalNeeds;
  /** Set on a question: `respond` answers it. */
  question?: PendingQuestion;
  next: NextStep;
}

/** A question to a person. */
export interface PendingQuestion extends QuestionPolicy {
  text: string;
  /** Answers to choose from. */
  options?: string[];
}

/** Whose approvals a call needs. */
export interface ApprovalNeeds {
  people: number;
  /** Approvals of these arguments so far. */
  given: DecisionRecord[];
  /** Names of people who cannot approve: they have approved already, or have sent or edited messages of the session. */
  notBy: string[];
  /** Whether only verified names count. */
  verified: boolean;
}

/** A call of the present run with what a person needs to decide about it. */
export interface CallDetail {
  call: ToolCall;
  /** The tool as the agent defines it; `null` when the agent no longer has it. */
  tool: ToolManifest | null;
  /** Absent unless the call waits for a person. */
  pending?: PendingCall;
  /** The last message of a person before the call, and the text that the model wrote with the call. */
  asked: { message: string; text: string };
}

/** Spending in the units of the caps; dollars as dollars. */
export interface BudgetView {
  limits: BudgetLimits;
  spent: Omit<Spent, 'nanoUsd' | 'lostNanoUsd'> & { usd: number; lostUsd: number };
  reserved: { usd: number; tokens: number };
  /** The session's pool, and what the session holds of it and has not spent. Absent: it has no pool. */
  pool?: { id: string; held: PoolAmounts };
  /** Models without a price: what they cost is not in `usd`. */
  unpriced: string[];
}

/** The answer of a query whose result is too large, in bytes of JSON. */
export interface TooLarge {
  tooLarge: { size: number; limit: number };
}

/** A part of a list: the `limit` entries before index `before` (default: the end). */
export interface PageInput {
  before?: number;
  limit?: number;
}

/** `first` is the index of the first item, `total` the length of the whole list. */
export interface Page<T> {
  items: T[];
  first: number;
  total: number;
}

/** The answer of a query: a page of what is in the run. */
export interface RunPage<T> extends Page<T> {
  /** Set if the page lacks entries that have left the run: the newest piece. The client adds those entries. */
  past?: ContentRef;
}

export type TranscriptPage = Page<Message>;
export type CallsPage = Page<ToolCall>;
