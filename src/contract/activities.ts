/**
 * The activities of a session: the only place with side effects. The workflow knows them by this interface.
 *
 * A failure of the world is a returned value, so that what the session should do about it is recorded as data. Exceptions
 * are Temporal's own: time-outs, cancellation, a lost worker, and the retries of model, `read` and `idempotent` calls.
 */

import type { EffectOutcome, EffectRef, EffectWait, ToolAnswer, ToolCall, ToolQuestion } from './calls.ts';
import type { WaiterInput } from './inputs.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Effect, Manifest } from './manifest.ts';
import type { CallResult } from './messages.ts';
import type {
  AgentUnavailable,
  ModelInput,
  ModelResult,
  NewManifest,
  PreparedCall,
  ReadsInput,
  ReadsResult,
  ToolOutput,
} from './model-call.ts';
import type { ACTIVITY } from './names.ts';
import type { DeliverInput, NotifyInput } from './notifications.ts';
import type { Past } from './past.ts';
import type { DrawAnswer, DrawRequest } from './pool.ts';
import type { ContentRef } from './thread.ts';
import type { ChildEnd, ChildStart, SteerInput } from './tree.ts';

/** Input of `load`: a part of the checkpoint that a session starts from. */
export interface LoadInput {
  sessionId: string;
  runId: string;
  eventId: number;
  kind: 'fork' | 'rewind';
  leaves?: string | undefined;
  archived?: ContentRef | undefined;
  /** Of a rewind: with what an undo of the effects since the checkpoint needs. */
  undo?: true;
  /** 0, 1, …: large content comes in parts. */
  part: number;
}

/** Input of `load`: effects of earlier runs that a cancelled session undoes. */
export interface LoadEffectsInput {
  kind: 'undo';
  sessionId: string;
  past: Pick<Past, 'newest' | 'sealed' | 'calls'>;
  /** How many of the effects are left to undo. Absent: all. */
  end?: number;
}

export type LoadResult =
  /** A part of the canonical JSON of what is loaded. */
  | { kind: 'part'; parts: number; text: string }
  /** The last effects before `end`, oldest first, the index of the first of them, and the digest of all effects. */
  | { kind: 'effects'; calls: ToolCall[]; from: number; digest: string }
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
  /** The tool's `compensate` runs, for the effect of this call. */
  compensates?: EffectRef;
  /** What people have answered to the tool's questions. */
  answers?: ToolAnswer[];
}

/** Input of `storePast`: the end of the transcript that leaves the run. */
export interface StorePastInput {
  /** The start of the chained digest over the transcript's messages. */
  digest: string;
  /** By which a worker recognises what its own workflow has handed it. Absent: the history is read. */
  mark?: number;
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
  /** The tool has done nothing yet, and asks a person. */
  | { kind: 'asks'; question: ToolQuestion }
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
  /** The call waits for a sub-agent, not for a global effect. */
  child?: ChildStart;
  /** See {@link ToolInput}. */
  resultLimit?: number;
}
/** The record of a global effect. */
export type AttachResult =
  | Extract<ToolResult, { kind: 'output' | 'error' | 'absent' | 'unavailable' }>
  /** No outcome yet: the effect will report to the session. `person`: it waits for one. */
  | { kind: 'waiting'; person?: EffectWait }
  /** The effect does not exist any more. */
  | { kind: 'gone'; reason: string }
  /** The sub-agent's session has ended. */
  | { kind: 'ended'; end: ChildEnd };

/** Input of `report`: the calls that are told to look at their effect. */
export interface ReportInput {
  waiters: WaiterInput[];
  /** Of a sub-agent's session: how it ends. */
  end?: ChildEnd;
  /** See {@link ToolInput}. */
  resultLimit?: number;
}

/** Input of `draw`: what the session tells its pool, and asks of it. */
export interface DrawInput extends Omit<DrawRequest, 'sessionId'> {
  pool: string;
}
/** `unset`: there is no such pool, or it does not run any more. */
export type DrawResult = DrawAnswer | { kind: 'unset'; message: string };

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
  /** See {@link ToolInput}. */
  compensates?: EffectRef;
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
  load(input: LoadInput | LoadEffectsInput): Promise<LoadResult>;
  describe(input: DescribeInput): Promise<DescribeResult>;
  model(input: ModelInput): Promise<ModelResult>;
  tool(input: ToolInput): Promise<ToolResult>;
  /** Answers a side question. */
  aside(input: ModelInput): Promise<ModelResult>;
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
  /** Draws from the session's pool of money, or gives back. */
  draw(input: DrawInput): Promise<DrawResult>;
  /** Cancels, pauses or resumes sub-agents. */
  steer(input: SteerInput): Promise<void>;
  /** Starts the delivery of notifications, in a workflow of its own. */
  notify(input: NotifyInput): Promise<void>;
  /** Sends one notification to one webhook. */
  deliver(input: DeliverInput): Promise<void>;
}

/** The same activities by their types, as the worker registers them. */
export type ActivitiesByType = {
  [K in keyof SessionActivities as (typeof ACTIVITY)[K]]: SessionActivities[K];
};
