/** Tool calls: the record of effects. */
import type { JsonObject, JsonValue } from './json.ts';
import type { Effect, IdempotencyScope } from './manifest.ts';
import type { CallResult } from './messages.ts';

/** Who did something, as given by the client; not verified by Perdure. */
export type Actor = string;

/** Stands for whoever gave no name: no person is called so. */
export const UNNAMED = '(no name given)';

/** What became of one dispatch of a mutating call. */
export type EffectOutcome =
  /** The effect happened; this is its output. */
  | { outcome: 'landed'; output: JsonValue; modelOutput?: JsonObject }
  /** It certainly did not happen, and will not. */
  | { outcome: 'absent'; reason: string }
  /** Nobody can tell yet. */
  | { outcome: 'unknown'; reason: string };

/** One dispatch of a call to a worker. */
export interface Dispatch {
  /** 1, 2, …: each follows a recorded *absent* of the one before. */
  no: number;
  /** ISO 8601, the workflow task that scheduled it. */
  at: string;
  /** Of a read, ISO 8601: when its last attempt began. */
  startedAt?: string;
  /** Of a read: attempts within the dispatch, when there was more than one. */
  attempts?: number;
  /** `null` while it runs. */
  outcome: 'returned' | EffectOutcome['outcome'] | null;
  reason?: string;
  /** Its worker was shut down in the middle of it, as by a deploy: it does not count towards the tool's attempts. */
  released?: true;
  /** The tool certainly did not begin: the dispatch does not count towards the tool's attempts either. */
  unbegun?: true;
}

/** A decision of a person on a call that waits for approval. */
export type Decision =
  | { decision: 'approve' }
  /** Run it with these arguments; they are validated against the tool's schema first. */
  | { decision: 'edit'; args: JsonValue }
  /** Do not run it; the model is told why. */
  | { decision: 'reject'; reason?: string }
  /** Do not run it; this answer stands for its result. */
  | { decision: 'respond'; output: JsonValue };

/** What a person says of a call whose outcome is unknown. */
export type Resolution =
  /** It happened; this is what it returned. */
  | { outcome: 'landed'; output: JsonValue }
  /** It did not happen: run it again. */
  | { outcome: 'absent' }
  /** Do not run it again; the model is told that it failed. */
  | { outcome: 'failed'; reason?: string };

/** A call as somebody has seen it: a decision holds only while these are its arguments. {@link PendingCall} is one. */
export interface SeenCall {
  callId: string;
  argsDigest: string;
}

/** A call whose outcome is open, as somebody has seen it: a resolution holds only for this dispatch. */
export interface SeenDispatch extends SeenCall {
  /** The number of its last dispatch; 0 if it has none. */
  dispatchNo: number;
}

/** What a person said of one dispatch, and when. */
export interface ResolutionRecord {
  dispatchNo: number;
  outcome: Resolution['outcome'];
  by: Actor;
  at: string;
  reason?: string;
}

/** Who decided what, and when. */
export interface DecisionRecord {
  decision: Decision['decision'] | 'expired';
  by: Actor;
  at: string;
  reason?: string;
}

/** Where a call stands. */
export type CallStatus =
  /** Waits for its turn in the batch. */
  | { kind: 'ready' }
  /** Waits for a person's approval; `expiresAt` is ISO 8601. */
  | { kind: 'approval'; expiresAt: string | null; problem?: string }
  /** Its edited arguments are being checked; `rewound` of one that may have been made after the checkpoint. */
  | { kind: 'preparing'; before?: { args: JsonValue; expiresAt: string | null }; rewound?: true }
  /** Waits for an equal call in flight. */
  | { kind: 'deferred'; to: string }
  /** A worker has it. */
  | { kind: 'running' }
  /**
   * Waits for its global effect, which has a workflow of its own. `checks` counts the looks at it that were not asked
   * for, `due` asks for one, and `person` says why the effect waits for a person, and which call.
   */
  | {
      kind: 'awaiting';
      checks: number;
      due?: true;
      person?: { kind: 'unknown' | 'stuck'; reason: string; call: SeenDispatch };
    }
  /** Certainly not attempted; waits before it is dispatched again. */
  | { kind: 'backoff' }
  /** Lost; waits until nothing of it can land any more. */
  | { kind: 'settling'; reason: string }
  /** The tool's `verify` is looking. */
  | { kind: 'verifying'; reason: string }
  /** Waits for a person to say what became of it. */
  | { kind: 'unknown'; reason: string }
  /** The tool is not on the worker; waits for it to come back or for a person. */
  | { kind: 'stuck'; reason: string }
  | { kind: 'completed' }
  /** `certain`: it is known that nothing happened. */
  | { kind: 'failed'; certain: boolean }
  /** Never dispatched: rejected, invalid, or the turn was interrupted. */
  | { kind: 'skipped' };

/** A call of a global effect that waits for a person. */
export type EffectWait = NonNullable<Extract<CallStatus, { kind: 'awaiting' }>['person']>;

/** One entry of the tool-call log. */
export interface ToolCall {
  id: string;
  turn: number;
  /** Number of the user's message that it answers: the last one that was taken when the model asked for it. */
  message: number;
  /** After a rewind: number of the message with whose key an equal effect happened, which is this call's key too. */
  keyOf?: number;
  name: string;
  args: JsonValue;
  /** SHA-256 of the canonical JSON of `{tool_name, args}`: what decisions are bound to. */
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
  /** Every resolution, oldest first. */
  resolutions: ResolutionRecord[];
  /** What the model is told; `null` until the call has ended. */
  result: CallResult | null;
  /** The call whose record answered this one. This one was not executed. */
  replayOf: string | null;
}

/** The number of a call's last dispatch; 0 if it has none. */
export function dispatchNoOf({ dispatches }: ToolCall): number {
  return dispatches.at(-1)?.no ?? 0;
}

/** The states in which a call has ended. */
export function isFinal(call: ToolCall): boolean {
  const kind = call.status.kind;
  return kind === 'completed' || kind === 'failed' || kind === 'skipped';
}
