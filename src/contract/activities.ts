/**
 * The activities of a session: the only place with side effects. The workflow knows them by this interface.
 *
 * A failure of the world is a returned value, not an exception: what the session should do about it is in
 * the history as data. Exceptions are left to Temporal's own: time-outs, cancellation, a lost worker, and
 * the retries of model, `read` and `idempotent` calls.
 */
import type { EffectOutcome, EffectWait } from './calls.ts';
import type { WaiterInput } from './inputs.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Effect, Manifest } from './manifest.ts';
import type { Block, CallResult } from './messages.ts';
import type { ACTIVITY } from './names.ts';
import type { ContentRef } from './thread.ts';

/** Input of `load`: a part of the checkpoint that a session starts from. */
export interface LoadInput {
  sessionId: string;
  runId: string;
  eventId: number;
  kind: 'fork' | 'rewind';
  leaves?: string | undefined;
  archived?: ContentRef | undefined;
  /** 0, 1, …: what is large comes in parts. */
  part: number;
}
/** A part of the canonical JSON of what is loaded. */
export type LoadResult =
  | { kind: 'part'; parts: number; text: string }
  | { kind: 'unavailable'; message: string };

/** Input of `describe`: which agent, and the context that has to fit it. */
export interface DescribeInput {
  agent: string;
  context?: JsonObject;
}
/** What the worker says an agent is. */
export type DescribeResult =
  | { kind: 'manifest'; manifest: Manifest; searchAttributes: string[] }
  | AgentUnavailable;

/** The worker cannot act for the session. `reason`: why, where it is not that it lacks the agent. */
export interface AgentUnavailable {
  kind: 'unavailable';
  message: string;
  reason?: 'context_invalid';
}

/** A read that an activity runs. Its tool and its arguments are in the last message of the transcript. */
export interface ReadCall {
  callId: string;
  idempotencyKey: string;
  /** Only when a person has edited them. */
  args?: JsonValue;
}

/** Input of `reads`: a position in the transcript, and which calls of its last message to run. */
export interface ReadsInput {
  agent: string;
  /** Digest of the definition that the session has. If the worker's differs, it returns its own and runs nothing. */
  manifest: string;
  /** The start of the chained digest over the transcript's messages. */
  digest: string;
  reads: ReadCall[];
  /** The session's directory for files, when it has one. */
  scratchpadRoot?: string;
  /** The session's context, when it has one. */
  context?: JsonObject;
}

/** How a read ended. */
export type ReadResult =
  | { kind: 'output'; output: JsonValue; modelOutput?: JsonObject }
  /** The tool threw or timed out. */
  | { kind: 'error'; message: string }
  /** The worker has no such tool. */
  | { kind: 'unavailable'; message: string };

/** A read that has ended, with its own times. */
export interface ReadEnd {
  callId: string;
  result: ReadResult;
  /** When its last attempt began, in milliseconds since 1970, and how long that took. */
  startedAt: number;
  ms: number;
  /** Absent when there was one. */
  attempts?: number;
}

/** Why an activity returned reads without a reply of the model. */
export type NoReplyReason =
  /** No reply was asked for. */
  | 'reads_only'
  /** The results have more bytes than the budget holds in reserve for them. */
  | 'large'
  /** A tool is gone. */
  | 'unavailable'
  /** The session does not want a reply any more, or did not say in time that it does. */
  | 'not_wanted'
  /** The activity was cancelled. Reads that had not ended run again later. */
  | 'cancelled'
  /** Its worker was shut down. Reads that had not ended run again. */
  | 'released';

/** What an activity that only reads came to. Reads that have ended are in `reads`, whatever else happened. */
export type ReadsResult = (
  | { kind: 'results'; reason: NoReplyReason }
  | { kind: 'manifest'; manifest: Manifest }
  | AgentUnavailable
  /** The transcript could not be read. */
  | { kind: 'unreadable'; message: string }
) & { reads?: ReadEnd[] };

/** A call of the last message that ended before the reads beside it: the transcript does not have its result yet. */
export interface EndedCall extends CallResult {
  callId: string;
}

/** What a model call does before it asks the model: it runs the reads that are left of the last reply. */
export interface ReadFirst {
  reads: ReadCall[];
  ended?: EndedCall[];
  /** Bytes of the message with all results that the budget holds in reserve. If they are more, no model is asked. */
  resultBytes: number;
  /** The session's directory for files, when it has one. */
  scratchpadRoot?: string;
}

/** Input of `model`: a position in the transcript, not a transcript. */
export interface ModelInput {
  agent: string;
  /** Digest of the definition that the session has; another on the worker is returned before anything is spent. */
  manifest: string;
  /** The start of the chained digest over the prompt's messages. */
  digest: string;
  turn: number;
  /** The session's context, when it has one. */
  context?: JsonObject;
  /** The reads of the last reply, when they are all that is left of it. */
  first?: ReadFirst;
  /** The model is asked to close with a summary, without tools. */
  summarize?: true;
  /** Index of the first model to ask, when those before it have failed at a cost. */
  fromModel?: number;
}

/** A call as the worker prepared it: validated, identified, and asked about approval. */
export interface PreparedCall {
  name: string;
  args: JsonValue;
  metadata?: JsonObject;
  /** What the session derives the call's idempotency key from. Absent when it is all arguments. */
  identity?: JsonValue;
  needsApproval?: true;
  /** Why the call cannot run, in words for the model. */
  problem?: string;
}

/** Tokens of one model call as the provider counted them; `null` when it did not. */
export interface Usage {
  inputTokens: number | null;
  outputTokens: number | null;
  /** Of the input tokens, those that were read from the provider's cache. */
  cachedInputTokens?: number;
  /** Of the input tokens, those that were written to the provider's cache. */
  cacheWriteTokens?: number;
}

/** Why a model call gave no reply. */
export type ModelFailureKind =
  /** Could not be reached, overloaded, or limited, over all attempts. */
  | 'provider_unavailable'
  /** Refused the request: bad key, bad schema, bad model, content policy. */
  | 'provider_rejected'
  /** Answered with something that is not a reply. */
  | 'invalid_response'
  /** The connection was lost after the request was sent. */
  | 'interrupted'
  /** The worker was lost after it may have sent the request. */
  | 'worker_lost'
  /** The transcript could not be read or does not have the digest that was asked for. */
  | 'history';

/** What a model call came to. Reads that have ended are in `reads`, whatever else happened. */
export type ModelResult = ModelAnswer & { reads?: ReadEnd[] };

type ModelAnswer =
  | { kind: 'results'; reason: NoReplyReason }
  | {
      kind: 'reply';
      /** Index in the manifest's list of the model that answered. Absent of the first. */
      model?: number;
      blocks: Exclude<Block, { kind: 'tool_call' } | { kind: 'tool_result' }>[];
      calls: PreparedCall[];
      /** Absent when the model simply answered or called tools. */
      finishReason?: string;
      usage: Usage;
      /** Models before it in the list that failed, and how. */
      fallbacks?: { model: number; message: string }[];
    }
  | { kind: 'manifest'; manifest: Manifest }
  | AgentUnavailable
  | {
      kind: 'failed';
      failure: ModelFailureKind;
      message: string;
      /** Requests of which the provider may have billed the worst case. */
      maybeBilled: number;
      /** Index of the model that failed at a cost. */
      model?: number;
      /** Its worker was shut down: the call is repeated, and does not count as a failure. */
      released?: true;
    };

/**
 * Input of `tool`, and with another dispatch number of each further dispatch. It is in the history of each call,
 * so what most calls do not need is left out.
 */
export interface ToolInput {
  agent: string;
  tool: string;
  callId: string;
  args: JsonValue;
  /** The start of the digest that the session has on record: an integrity check of `args`. */
  argsDigest: string;
  idempotencyKey: string;
  effect: Effect;
  dispatchNo: number;
  /** Of a mutation: the run that issued the dispatch. It refuses to run under another. */
  issuedRunId?: string;
  /** Of a mutation: the worker marks the call at the server before the tool begins, even if it has just issued it. */
  markFirst?: true;
  /**
   * Of a mutation: the clock of the worker that issued the dispatch, in milliseconds since 1970, by which it knows
   * its own. Not of the session's state: each replay has another, and the history the one that was scheduled.
   */
  issueMark?: number;
  timeoutMs: number;
  /** Bytes of JSON that its result may have, where it is less than usual; what is larger is shortened with a notice. */
  resultLimit?: number;
  /** The session's directory for files, when it has one. */
  scratchpadRoot?: string;
  /** The session's context, when it has one. */
  context?: JsonObject;
}

/** What a tool call came to. */
export type ToolResult =
  | {
      kind: 'output';
      output: JsonValue;
      /** What the model is sent in place of the output, as the tool's `toModelOutput` gave it. */
      modelOutput?: JsonObject;
    }
  /** The tool threw; of a `read` or `idempotent`. */
  | { kind: 'error'; message: string }
  /** A `mutate` that did not simply return. */
  | {
      kind: 'absent';
      reason: string;
      retryable: boolean;
      /** The tool did not begin: the dispatch does not count towards the tool's attempts. */
      unbegun?: true;
    }
  | { kind: 'unknown'; reason: string; released?: true }
  /** An `idempotent` call whose worker was shut down in the middle of it: run it again. */
  | { kind: 'released' }
  /** The worker has no such tool or agent. */
  | { kind: 'unavailable'; message: string };

/** Input of `attach`: a call, and the effect that it waits for. */
export interface AttachInput {
  agent: string;
  tool: string;
  callId: string;
  idempotencyKey: string;
  /** With it the effect is started unless it is there. Absent: the activity only looks. */
  start?: { args: JsonValue; context?: JsonObject };
  /** As of {@link ToolInput}. */
  resultLimit?: number;
}
/** What the record of a global effect says. */
export type AttachResult =
  | Extract<ToolResult, { kind: 'output' | 'error' | 'absent' | 'unavailable' }>
  /** No outcome yet: the effect will tell the session. `person`: it waits for one. */
  | { kind: 'waiting'; person?: EffectWait }
  /** There is no such effect any more. */
  | { kind: 'gone'; reason: string };

/** Input of `report`: the calls that are told to look at their effect. */
export interface ReportInput {
  waiters: WaiterInput[];
}

/**
 * Attempts of a model call within one command, while the provider is down or limits us. An activity that the server
 * handed over with the answer to a workflow task is not told its retry policy, so both sides read it here.
 */
export const MODEL_ATTEMPTS = 5;

/** How often `verify` is tried on one worker, before what it throws is *unknown*. */
export const VERIFY_TRIES = 3;

/** Input of `verify`. */
export interface VerifyInput {
  agent: string;
  tool: string;
  callId: string;
  args: JsonValue;
  idempotencyKey: string;
  timeoutMs: number;
  scratchpadRoot?: string;
  /** The session's context, when it has one. */
  context?: JsonObject;
}
/** What `verify` found. */
export type VerifyResult = EffectOutcome;

/** Input of `prepare`: arguments that a person edited. */
export interface PrepareInput {
  agent: string;
  tool: string;
  callId: string;
  args: JsonValue;
  /** The session's context, when it has one. */
  context?: JsonObject;
}

/** The activities that a worker offers to sessions. */
export interface SessionActivities {
  load(input: LoadInput): Promise<LoadResult>;
  describe(input: DescribeInput): Promise<DescribeResult>;
  model(input: ModelInput): Promise<ModelResult>;
  tool(input: ToolInput): Promise<ToolResult>;
  reads(input: ReadsInput): Promise<ReadsResult>;
  /** Starts the effect of a call of scope `global` if nobody has, and has it tell the session of its outcome. */
  attach(input: AttachInput): Promise<AttachResult>;
  /** Tells sessions that a global effect has something to tell. */
  report(input: ReportInput): Promise<void>;
  verify(input: VerifyInput): Promise<VerifyResult>;
  prepare(input: PrepareInput): Promise<PreparedCall>;
}

/** The same activities by their types, as the worker registers them. */
export type ActivitiesByType = {
  [K in keyof SessionActivities as (typeof ACTIVITY)[K]]: SessionActivities[K];
};

/** How an activity ended without a result, in words that the live session and the fold derive alike. */
export interface ActivityFailureInfo {
  /** `lost`: a successor has proof that the worker died. */
  kind: 'timeout' | 'cancelled' | 'failed' | 'lost';
  message: string;
  /** The worker gave no sign that the tool of a mutation had begun: see {@link BEGAN}. */
  unbegun?: true;
}

/**
 * Heartbeat details of a mutation whose tool begins now. A worker sends them before the tool, and waits for the
 * server's answer, unless it has issued the first dispatch itself a moment ago: then they follow with the next heartbeat.
 */
export const BEGAN = 'began';

/** Types of the failures by which a successor ends what a dead worker had in flight. */
export const LOST = {
  /** Its tool had begun, its model may have been asked, or neither is known. */
  worker: 'WorkerLost',
  /** The tool of a mutation had not begun, or no model had been asked. */
  unbegun: 'WorkerLostBeforeCall',
} as const;

/** The outcome of an activity: its result, or how it ended without one. */
export type ActivityOutcome<T> = { ok: true; value: T } | { ok: false; failure: ActivityFailureInfo };
