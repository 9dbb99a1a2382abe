/**
 * The activities of a session: the only place with side effects. The workflow knows them by this interface.
 *
 * A failure of the world is a returned value, so that what the session should do about it is recorded as data. Exceptions
 * are Temporal's own: time-outs, cancellation, a lost worker, and the retries of model, `read` and `idempotent` calls.
 */
import type { EffectOutcome, EffectWait } from './calls.ts';
import type { WaiterInput } from './inputs.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Effect, Manifest } from './manifest.ts';
import type { Block, CallResult, MessageBlock } from './messages.ts';
import type { ACTIVITY } from './names.ts';
import type { DeliverInput, NotifyInput } from './notifications.ts';
import type { CheckedOutput } from './output.ts';
import type { ContentRef } from './thread.ts';
import type { ValueRef } from './values.ts';

/** Input of `load`: a part of the checkpoint that a session starts from. */
export interface LoadInput {
  sessionId: string;
  runId: string;
  eventId: number;
  kind: 'fork' | 'rewind';
  leaves?: string | undefined;
  archived?: ContentRef | undefined;
  /** 0, 1, …: large content comes in parts. */
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
  reason?: 'context_invalid' | 'instructions_failed';
  /** Another worker may have the agent: the session looks for it by itself. Absent in old histories. */
  lookAgain?: true;
}

/** A read to run. Its tool and arguments are in the last message of the transcript. */
export interface ReadCall {
  callId: string;
  /** Only when it is not the `readKey` of the activity's own run: after a rewind or a reset, or in another scope. */
  idempotencyKey?: string;
  /** Only when a person has edited them. */
  args?: JsonValue;
}

/** Input of `reads`: a position in the transcript, and which calls of its last message to run. */
export interface ReadsInput {
  agent: string;
  /** Digest of the session's definition. A worker with another one returns its own and runs nothing. */
  manifest: string;
  /** The start of the chained digest over the transcript's messages. */
  digest: string;
  reads: ReadCall[];
  scratchpadRoot?: string;
  /** The session's context, when it has one. */
  context?: JsonObject;
}

/** The worker has another definition than the session, and ran nothing. */
export interface NewManifest {
  kind: 'manifest';
  manifest: Manifest;
  /** It was not the activity's first attempt: one before it may have run something. */
  again?: true;
}

/** What a tool returned, as it is recorded. */
export interface ToolOutput {
  output: JsonValue;
  /** What the model gets in place of the output: the tool's `toModelOutput`. */
  modelOutput?: JsonObject;
  /** The whole output is stored, and `output` holds its beginning and its end. */
  value?: ValueRef;
}

export type ReadResult =
  | ({ kind: 'output' } & ToolOutput)
  /** The tool threw or timed out. */
  | { kind: 'error'; message: string }
  /** The worker has no such tool. `misfit`: it has, and the session's context does not fit it. */
  | { kind: 'unavailable'; message: string; misfit?: true };

export interface ReadEnd {
  callId: string;
  result: ReadResult;
  /** When its last attempt began (milliseconds since 1970), and how long it took. */
  startedAt: number;
  ms: number;
  /** Absent when there was one. */
  attempts?: number;
}

/** Why an activity returned reads without a reply of the model. */
export type NoReplyReason =
  /** No reply was asked for. */
  | 'reads_only'
  /** The results are larger than what the budget holds in reserve for them. */
  | 'large'
  /** A tool is gone. */
  | 'unavailable'
  /** The session does not want a reply any more, or has not confirmed in time that it does. */
  | 'not_wanted'
  /** The activity was cancelled. Unfinished reads run again later. */
  | 'cancelled'
  /** Its worker was shut down. Unfinished reads run again. */
  | 'released';

/** The result of an activity that only reads. `reads` holds the finished reads in every case. */
export type ReadsResult = (
  | { kind: 'results'; reason: NoReplyReason }
  | NewManifest
  | AgentUnavailable
  /** The transcript could not be read. */
  | { kind: 'unreadable'; message: string }
) & { reads?: ReadEnd[] };

/** A call of the last message whose result is not in the transcript yet: it ended before the reads beside it. */
export interface EndedCall extends CallResult {
  callId: string;
}

/** What a model call does before it asks the model: it runs the remaining reads of the last reply. */
export interface ReadFirst {
  reads: ReadCall[];
  ended?: EndedCall[];
  /**
   * Bytes that the message with all results may have: what the budget holds in reserve, or what the context window has
   * room for. With more, no model is asked. Absent: see `resultBytesOf`.
   */
  resultBytes?: number;
  scratchpadRoot?: string;
}

/** Input of `model`: a position in the transcript, not a transcript. */
export interface ModelInput {
  agent: string;
  /** Digest of the session's definition. A worker with another one returns its own and spends nothing. */
  manifest: string;
  /** The start of the chained digest over the prompt's messages. */
  digest: string;
  turn: number;
  /** The session's context, when it has one. */
  context?: JsonObject;
  /** The reads of the last reply, when they are all that is left of it. */
  first?: ReadFirst;
  /** The model is asked for a closing summary, without tools. */
  summarize?: true;
  /** The model is asked to summarize the older messages of the prompt. */
  compact?: CompactInput;
  /** Index of the first model to ask. The models before it have failed at a cost. */
  fromModel?: number;
  /** The search attributes that the session writes, when it lacks some of ours. */
  searchAttributes?: string[];
}

/** How to compact a prompt. */
export interface CompactInput {
  /** Bytes of JSON that the messages may have that stay as they are. */
  keep: number;
  /** An earlier try gave no summary: the model may not call tools in this one. */
  again?: true;
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

/** Tokens of one model call as the provider counted them, or `null`. */
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
  /** The prompt is larger than the model's context window, or cannot be compacted. */
  | 'context_window'
  /** The connection was lost after the request was sent. */
  | 'interrupted'
  /** The worker was lost after it may have sent the request. */
  | 'worker_lost'
  /** The transcript could not be read or does not have the digest that was asked for. */
  | 'history';

/** The result of a model call. `reads` holds the finished reads in every case. */
export type ModelResult = ModelAnswer & {
  reads?: ReadEnd[];
  /** The search attributes that the server knows, when the session's input has others. */
  searchAttributes?: string[];
};

type ModelAnswer =
  | { kind: 'results'; reason: NoReplyReason }
  | {
      kind: 'reply';
      /** Index of the answering model in the manifest's list. Absent for the first. */
      model?: number;
      blocks: Exclude<Block, { kind: 'tool_call' } | { kind: 'tool_result' }>[];
      calls: PreparedCall[];
      /** Absent when the model simply answered or called tools. */
      finishReason?: string;
      usage: Usage;
      /** The start of the digest of the instructions, when they are a function of the context. */
      instructions?: string;
      /** Of an answer without calls, when the agent has an `output` schema. */
      output?: CheckedOutput<JsonValue>;
      /** Models before it in the list, and how they failed. */
      fallbacks?: { model: number; message: string }[];
    }
  | Compacted
  /** No message of the prompt can be summarized. */
  | { kind: 'uncompacted'; message: string }
  | NewManifest
  | AgentUnavailable
  | {
      kind: 'failed';
      failure: ModelFailureKind;
      message: string;
      /** Requests that the provider may have billed at their worst case. */
      maybeBilled: number;
      /** Index of the model that failed at a cost. */
      model?: number;
      /** Its worker was shut down: the call is repeated and does not count as a failure. */
      released?: true;
    };

/** A summary of the older messages of a prompt. */
export interface Compacted {
  kind: 'compacted';
  /** Index in the session of the first message that stays. */
  before: number;
  /** Bytes of the messages that the summary stands for, and of those that stay. */
  replaced: number;
  kept: number;
  text: string;
  /** Earlier words of people that stay word for word. */
  verbatim?: string[];
  /** The message that is being answered, when it does not stay by itself. */
  open?: string;
  /** The pinned messages among those that it stands for. */
  pinned?: MessageBlock[];
  /** The model could not read all of it at once: the rest is to be compacted next. */
  more?: true;
  /** See the reply. */
  model?: number;
  usage: Usage;
  fallbacks?: { model: number; message: string }[];
}

/** Input of `tool`. It is in the history for each dispatch of a call, so it leaves out what most calls do not need. */
export interface ToolInput {
  agent: string;
  tool: string;
  callId: string;
  args: JsonValue;
  /** The beginning of the recorded digest of `args`: an integrity check. */
  argsDigest: string;
  idempotencyKey: string;
  effect: Effect;
  dispatchNo: number;
  /** The run that issued the dispatch of a mutation. The tool refuses to run under another. */
  issuedRunId?: string;
  /** Of a mutation: the worker marks the call at the server before the tool begins, even when it has just issued it. */
  markFirst?: true;
  /**
   * The clock of the worker that issued the dispatch of a mutation, in milliseconds since 1970. By it the worker recognises
   * its own dispatch. It is not part of the session's state.
   */
  issueMark?: number;
  timeoutMs: number;
  /** Bytes of JSON that its result may have, when that is less than usual. Larger results are shortened with a notice. */
  resultLimit?: number;
  scratchpadRoot?: string;
  /** The session's context, when it has one. */
  context?: JsonObject;
  /** Where the record of an equal call may be that has left the run: the worker looks there first. */
  past?: ContentRef;
}

/** Input of `storePast`: the end of the transcript that leaves the run. */
export interface StorePastInput {
  /** The start of the chained digest over the transcript's messages. */
  digest: string;
}

export type StorePastResult =
  /** `pauses`: how many of the run's pauses are stored. Absent: those that are over. */
  | { kind: 'stored'; newest: ContentRef; left?: true; pauses?: number }
  /** It cannot be stored now; the session goes on as it is. */
  | { kind: 'unavailable'; message: string };

/** Input of `takenIds`: ids of messages that an earlier run may have taken, and the newest piece. */
export interface TakenIdsInput {
  ids: string[];
  past: ContentRef;
}

export type TakenIdsResult =
  /** The ids that a piece has, and the others. */
  | { kind: 'found'; taken: string[]; fresh: string[] }
  /** The pieces cannot be read, and will not be. */
  | { kind: 'unavailable'; message: string };

export type ToolResult =
  | ({ kind: 'output' } & ToolOutput)
  /** The tool threw; of a `read` or `idempotent`. */
  | { kind: 'error'; message: string }
  /** A `mutate` that did not simply return. */
  | {
      kind: 'absent';
      reason: string;
      retryable: boolean;
      /** The tool did not begin: the dispatch does not count as an attempt. */
      unbegun?: true;
    }
  | { kind: 'unknown'; reason: string; released?: true }
  /** The tool did not run: the record of an equal call before this run answers it. */
  | {
      kind: 'replay';
      of: string;
      status: { kind: 'completed' } | { kind: 'failed'; certain: boolean };
      result: CallResult;
    }
  /** The worker of an `idempotent` call was shut down in the middle of it: run it again. */
  | { kind: 'released' }
  /** The worker's definition calls the tool a mutation, the session's does not. */
  | NewManifest
  /** The worker has no such tool or agent. `misfit`: it has, and the session's context does not fit it. */
  | { kind: 'unavailable'; message: string; misfit?: true };

/** Input of `attach`: a call, and the effect that it waits for. */
export interface AttachInput {
  agent: string;
  tool: string;
  callId: string;
  idempotencyKey: string;
  /** Starts the effect unless it exists. Absent: the activity only looks. */
  start?: { args: JsonValue; context?: JsonObject };
  /** See {@link ToolInput}. */
  resultLimit?: number;
}
/** The record of a global effect. */
export type AttachResult =
  | Extract<ToolResult, { kind: 'output' | 'error' | 'absent' | 'unavailable' }>
  /** No outcome yet: the effect will report to the session. `person`: it waits for one. */
  | { kind: 'waiting'; person?: EffectWait }
  /** The effect does not exist any more. */
  | { kind: 'gone'; reason: string };

/** Input of `report`: the calls that are told to look at their effect. */
export interface ReportInput {
  waiters: WaiterInput[];
}

/** Attempts of a model call within one command. An eagerly started activity does not know its retry policy, so it is here. */
export const MODEL_ATTEMPTS = 5;

/** How often `verify` is tried on one worker before an exception counts as *unknown*. */
export const VERIFY_TRIES = 3;

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
  /** Starts the effect of a `global` call unless it exists, and subscribes the session to its outcome. */
  attach(input: AttachInput): Promise<AttachResult>;
  /** Tells sessions that a global effect has news. */
  report(input: ReportInput): Promise<void>;
  verify(input: VerifyInput): Promise<VerifyResult>;
  prepare(input: PrepareInput): Promise<PreparedCall>;
  /** Stores what leaves the run, before the session goes on in a new one. */
  storePast(input: StorePastInput): Promise<StorePastResult>;
  /** Looks up ids of messages in what has left the session's runs. */
  takenIds(input: TakenIdsInput): Promise<TakenIdsResult>;
  /** Starts the delivery of notifications, in a workflow of its own. */
  notify(input: NotifyInput): Promise<void>;
  /** Sends one notification to one webhook. */
  deliver(input: DeliverInput): Promise<void>;
}

/** The same activities by their types, as the worker registers them. */
export type ActivitiesByType = {
  [K in keyof SessionActivities as (typeof ACTIVITY)[K]]: SessionActivities[K];
};
