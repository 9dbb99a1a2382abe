/**
 * The activities of a session: the only place with side effects. The workflow knows them by this interface.
 *
 * An activity returns a failure of the outside world as a value, so that the history records what the session should do
 * about it. Only Temporal's own failures are exceptions: time-outs, cancellation, a lost worker, and errors of model,
 * `read` and `idempotent` calls that Temporal retries.
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
  /** Rewind only: also load what an undo of the effects since the checkpoint needs. */
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
  /** The last effects before `end`, oldest first. `from` is the index of the first one; `digest` covers all effects. */
  | { kind: 'effects'; calls: ToolCall[]; from: number; digest: string }
  | { kind: 'unavailable'; message: string };

/** Input of `describe`: the agent, and the context that must fit its schema. */
export interface DescribeInput {
  agent: string;
  context?: JsonObject;
}
/** The agent's manifest as the worker defines it, or why the worker has none. */
export type DescribeResult =
  | { kind: 'manifest'; manifest: Manifest; searchAttributes: string[] }
  | AgentUnavailable;

/**
 * Input of `tool`. The history holds one for each dispatch of a call, so fields that most calls do not need are
 * optional.
 */
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
  /** Mutations only: the run that issued the dispatch. The activity refuses to run the tool under another run. */
  issuedRunId?: string;
  /** Mutations only: the worker marks the call at the server before the tool begins, even if it has just issued it. */
  markFirst?: true;
  /**
   * Mutations only: when the worker issued the dispatch by its own clock, in milliseconds since 1970. The worker
   * recognises its own dispatch by this number. It is not part of the session's state.
   */
  issueMark?: number;
  timeoutMs: number;
  /** The limit of the result in bytes of JSON, if lower than usual. Larger results are shortened with a notice. */
  resultLimit?: number;
  scratchpadRoot?: string;
  /** The session's context, when it has one. */
  context?: JsonObject;
  /** The sealed pieces that may hold the record of an equal call from an earlier run. The worker looks there first. */
  past?: ContentRef;
  /** Set on a compensation: the tool's `compensate` runs, for this effect. */
  compensates?: EffectRef;
  /** What people have answered to the tool's questions. */
  answers?: ToolAnswer[];
}

/** Input of `storePast`: the position up to which the transcript leaves the run. */
export interface StorePastInput {
  /** The start of the chained digest over the transcript's messages. */
  digest: string;
  /**
   * Finds the past that a workflow of the same worker handed over in memory. Absent: the activity reads the history.
   */
  mark?: number;
}

export type StorePastResult =
  /**
   * `left`: see {@link Past}. `pauses`: how many of the run's pauses are stored. Absent: all that are over. `allIds`: the
   * session remembers all ids that clients chose. Absent: only those that do not begin with `msg_`.
   */
  | { kind: 'stored'; newest: ContentRef; left?: true; pauses?: number; allIds?: true }
  /** It cannot be stored now; the session goes on as it is. */
  | { kind: 'unavailable'; message: string };

/** Input of `takenIds`: ids of messages that an earlier run may have taken, and the newest piece. */
export interface TakenIdsInput {
  ids: string[];
  past: ContentRef;
}

export type TakenIdsResult =
  /** `taken`: ids that a piece has. `fresh`: the other ids. */
  | { kind: 'found'; taken: string[]; fresh: string[] }
  /** The pieces cannot be read, and a retry would not help. */
  | { kind: 'unavailable'; message: string };

export type ToolResult =
  | ({ kind: 'output' } & ToolOutput)
  /** A `read` or `idempotent` tool threw. */
  | { kind: 'error'; message: string }
  /** A mutation that certainly did not happen (`absent`), or of which nobody can tell (`unknown`). */
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
  /** The tool did not run: the record of an equal call from an earlier run answers the call. */
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
  /** The worker lacks the tool or the agent. `misfit`: it has both, but the session's context does not fit. */
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
  /** No outcome yet: the effect will report to the session. `person`: why the effect waits for a person. */
  | { kind: 'waiting'; person?: EffectWait }
  /** The effect no longer exists. */
  | { kind: 'gone'; reason: string }
  /** The sub-agent's session has ended. */
  | { kind: 'ended'; end: ChildEnd };

/** Input of `report`: the calls that must look at their effect again. */
export interface ReportInput {
  waiters: WaiterInput[];
  /** Only from a sub-agent's session: how it ends. */
  end?: ChildEnd;
  /** See {@link ToolInput}. */
  resultLimit?: number;
}

/** Input of `draw`: what the session reports to its pool, and what it asks for. */
export interface DrawInput extends Omit<DrawRequest, 'sessionId'> {
  pool: string;
}
/** `unset`: the pool does not exist, or it no longer runs. */
export type DrawResult = DrawAnswer | { kind: 'unset'; message: string };

/**
 * Attempts of a model call within one command: a constant, because an eager activity does not know its retry policy.
 */
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
  /** Tells sessions that a global effect has news, or that a sub-agent has ended. */
  report(input: ReportInput): Promise<void>;
  verify(input: VerifyInput): Promise<VerifyResult>;
  prepare(input: PrepareInput): Promise<PreparedCall>;
  /** Stores what leaves the run, before the session continues in a new run. */
  storePast(input: StorePastInput): Promise<StorePastResult>;
  /** Looks up message ids in the sealed pieces of the session's earlier runs. */
  takenIds(input: TakenIdsInput): Promise<TakenIdsResult>;
  /** Draws from the session's pool, or gives back what the session holds. */
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
