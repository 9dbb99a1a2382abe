/** Tool calls: the record of effects. */
import type { JsonObject, JsonValue } from './json.ts';
import type { Effect, IdempotencyScope } from './manifest.ts';
import type { CallResult } from './messages.ts';
import type { ValueRef } from './values.ts';

/** Who did something, as the client states it. The name was checked only where `verified` says so. */
export type Actor = string;

/** Used when no name was given. */
export const UNNAMED = '(no name given)';

/** The outcome of a mutation's dispatch. */
export type EffectOutcome =
  /** The effect happened; this is its output. */
  | { outcome: 'landed'; output: JsonValue; modelOutput?: JsonObject; value?: ValueRef }
  /** It certainly did not happen, and will not. */
  | { outcome: 'absent'; reason: string }
  /** Nobody can tell yet. */
  | { outcome: 'unknown'; reason: string };

/** One dispatch of a call to a worker. */
export interface Dispatch {
  /** 1, 2, …: each follows a recorded *absent* of the previous one. */
  no: number;
  /** ISO 8601: the time of the workflow task that scheduled it. */
  at: string;
  /** Reads only, ISO 8601: when the last attempt began. */
  startedAt?: string;
  /** Reads only: the number of attempts, if more than one. */
  attempts?: number;
  /** `null` while it runs. */
  outcome: 'returned' | EffectOutcome['outcome'] | null;
  reason?: string;
  /** Its worker was shut down while the tool ran, as in a deploy: it does not count as an attempt. */
  released?: true;
  /** The tool certainly did not begin: it does not count as an attempt. */
  unbegun?: true;
  /** The tool asked a person something and did nothing: it does not count as an attempt. */
  asked?: true;
}

/** What a tool asks a person in the middle of a call. */
export interface ToolQuestion {
  text: string;
  /** JSON Schema of the answer. Absent: any text or JSON. */
  answer?: JsonObject;
  /** Data that the tool gets back with the answer. */
  state?: JsonValue;
}

/** A question of a tool with a person's answer. */
export interface ToolAnswer extends ToolQuestion {
  output: JsonValue;
  by: Actor;
  /** The HTTP API, or your program, has verified `by`. */
  verified?: true;
  at: string;
}

/** A decision of a person on a call that waits for approval. */
export type Decision =
  | { decision: 'approve' }
  /** Run it with these arguments; they are validated against the tool's schema first. */
  | { decision: 'edit'; args: JsonValue }
  /** Do not run it; the model is told why. */
  | { decision: 'reject'; reason?: string }
  /** Do not run it; this is its result. */
  | { decision: 'respond'; output: JsonValue };

/** A person's answer on a call whose outcome is unknown. */
export type Resolution =
  /** It happened; this is what it returned. */
  | { outcome: 'landed'; output: JsonValue }
  /** It did not happen: run it again. */
  | { outcome: 'absent' }
  /** Do not run it again; the model is told that it failed. */
  | { outcome: 'failed'; reason?: string };

/**
 * A call as a person saw it: a decision holds only for these arguments. A {@link PendingCall} can be passed as it is.
 */
export interface SeenCall {
  callId: string;
  argsDigest: string;
}

/** A call with an open outcome as a person saw it: a resolution holds only for this dispatch. */
export interface SeenDispatch extends SeenCall {
  /** The number of its last dispatch; 0 if it has none. */
  dispatchNo: number;
}

/** A recorded resolution of one dispatch. */
export interface ResolutionRecord {
  dispatchNo: number;
  outcome: Resolution['outcome'];
  by: Actor;
  /** The HTTP API, or your program, has verified `by`. */
  verified?: true;
  at: string;
  reason?: string;
}

export interface DecisionRecord {
  decision: Decision['decision'] | 'expired';
  by: Actor;
  /** The HTTP API, or your program, has verified `by`. */
  verified?: true;
  at: string;
  reason?: string;
}

/** What a call returns to when its edited arguments are refused. */
export interface PreparedBefore {
  args: JsonValue;
  expiresAt: string | null;
  given?: DecisionRecord[];
}

/** Who must approve a call, and who has. */
export interface ApproverRules {
  /** How many people must approve. */
  people: number;
  /** Whoever sent or edited messages of the session cannot approve. */
  byAnother?: true;
  /** Approvals under unverified names count, too. */
  unverified?: true;
  /** Approvals of the present arguments, oldest first. */
  given: DecisionRecord[];
}

export type CallStatus =
  /** Waits for its turn in the batch. */
  | { kind: 'ready' }
  /** Waits for a person's approval. `expiresAt` is ISO 8601. */
  | {
      kind: 'approval';
      expiresAt: string | null;
      problem?: string;
      /** What the tool asks in the middle of the call. `respond` answers it, and the call goes on. */
      question?: ToolQuestion;
    }
  /** Its edited arguments are being checked. `rewound`: the call may have been made after the checkpoint. */
  | { kind: 'preparing'; before?: PreparedBefore; rewound?: true }
  /** Waits for an equal call in flight. */
  | { kind: 'deferred'; to: string }
  /** A worker has it. */
  | { kind: 'running' }
  /**
   * Waits for its global effect or its sub-agent. `checks` counts the looks that no signal requested. `due`: look now.
   */
  | {
      kind: 'awaiting';
      checks: number;
      due?: true;
      person?:
        | { kind: 'unknown' | 'stuck'; reason: string; call: SeenDispatch }
        /** No worker polls the task queue of its sub-agent. */
        | { kind: 'stuck'; reason: string; taskQueue: string };
    }
  /** Certainly not attempted. Waits before it is dispatched again. */
  | { kind: 'backoff' }
  /** Its dispatch was lost. Waits until that dispatch can no longer take effect. */
  | { kind: 'settling'; reason: string }
  /** The tool's `verify` is looking. */
  | { kind: 'verifying'; reason: string }
  /** Waits for a person's resolution. */
  | { kind: 'unknown'; reason: string }
  /**
   * The worker lacks the tool. The call waits for a worker that has it, or for a person. `checks` counts the looks for
   * such a worker. `due`: look now. `misfit`: the session's context does not fit the tool. `failed`: the tool is there,
   * but it could not undo an effect; only a person can continue.
   */
  | { kind: 'stuck'; reason: string; checks?: number; due?: true; misfit?: true; failed?: true }
  /** Waits until a time, in ISO 8601. The session then answers the call. */
  | { kind: 'sleeping'; until: string; reason: string }
  | { kind: 'completed' }
  /** `certain`: the effect certainly did not happen. */
  | { kind: 'failed'; certain: boolean }
  /** Never dispatched: rejected, invalid, or the turn was interrupted. */
  | { kind: 'skipped' };

/** Why a global effect or a sub-agent waits for a person. */
export type EffectWait = NonNullable<Extract<CallStatus, { kind: 'awaiting' }>['person']>;

/** One entry of the tool-call log. */
export interface ToolCall {
  id: string;
  turn: number;
  /** Number of the user's message that it answers. */
  message: number;
  /** After a rewind: the call uses the key of this message, because an equal effect already has that key. */
  keyOf?: number;
  name: string;
  args: JsonValue;
  /** SHA-256 of the canonical JSON of `{tool_name, args}`. Decisions are bound to it. */
  argsDigest: string;
  effect: Effect;
  scope: IdempotencyScope;
  idempotencyKey: string;
  status: CallStatus;
  /** ISO 8601: when its first dispatch was scheduled, and when its end was recorded. */
  issuedAt: string | null;
  completedAt: string | null;
  dispatches: Dispatch[];
  decision: DecisionRecord | null;
  /** Set if the approval takes another person or several people. `decision` is then the last of their decisions. */
  approvers?: ApproverRules;
  /** What people have answered to the tool's questions, oldest first. */
  answers?: ToolAnswer[];
  /** Oldest first. */
  resolutions: ResolutionRecord[];
  /** What the model is told, or `null` until the call has ended. */
  result: CallResult | null;
  /** The call whose record answered this one, which was not executed. */
  replayOf: string | null;
  /** Its sub-agent works on in the background after the call has ended. */
  background?: true;
  /** Set on a compensation: the effect that it undoes. Its arguments hold that call's arguments and its output. */
  compensates?: EffectRef;
  /** The id of the call that has undone its effect. An equal call runs again, with another key. */
  compensatedBy?: string;
}

/** Identifies an effect. Runs that a rewind abandoned may have used the same call id, but not the same key. */
export interface EffectRef {
  callId: string;
  idempotencyKey: string;
}

export function isSameEffect(a: EffectRef, b: EffectRef): boolean {
  return a.callId === b.callId && a.idempotencyKey === b.idempotencyKey;
}

/** The number of a call's last dispatch, or 0. */
export function dispatchNoOf({ dispatches }: ToolCall): number {
  return dispatches.at(-1)?.no ?? 0;
}

/** Whether a call has ended. */
export function isFinal(call: ToolCall): boolean {
  const kind = call.status.kind;
  return kind === 'completed' || kind === 'failed' || kind === 'skipped';
}

/** Whether a call's record answers an equal call: it happened, or nobody can tell and it must not run again. */
export function isAnswered({ status, effect, compensatedBy }: ToolCall): boolean {
  if (compensatedBy !== undefined) return false;
  return status.kind === 'completed' || (status.kind === 'failed' && !status.certain && effect === 'mutate');
}

/** Whether an undo must consider a call: the call may have an effect of its own that was not undone. */
export function isUndoable(call: ToolCall): boolean {
  const { effect, replayOf, dispatches, compensates, compensatedBy } = call;
  if (effect === 'read' || replayOf !== null || dispatches.length === 0) return false;
  return compensates === undefined && compensatedBy === undefined;
}
