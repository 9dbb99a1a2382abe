/** Everything that can change a session: input from people, outcomes of commands, and the session's own steps. */
import type {
  AttachInput,
  AttachResult,
  DescribeInput,
  DescribeResult,
  DrawInput,
  DrawResult,
  LoadEffectsInput,
  LoadInput,
  LoadResult,
  PrepareInput,
  ReportInput,
  StorePastInput,
  StorePastResult,
  TakenIdsInput,
  TakenIdsResult,
  ToolInput,
  ToolResult,
  VerifyInput,
  VerifyResult,
} from '../contract/activities.ts';
import type { EditInput } from '../contract/edit.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import type {
  BudgetInput,
  CancelRequest,
  DecideInput,
  EditMessageInput,
  EffectDoneInput,
  PauseInput,
  PoolChangedInput,
  RateTurnInput,
  ResolveInput,
  ResumeInput,
  SearchAttributesInput,
  SendInput,
  WaiterInput,
  WithdrawInput,
} from '../contract/inputs.ts';
import type {
  AsideQuestion,
  ModelInput,
  ModelResult,
  PreparedCall,
  ReadsInput,
  ReadsResult,
} from '../contract/model-call.ts';
import type { NotifyInput } from '../contract/notifications.ts';
import type { CarriedEffect } from '../contract/origin.ts';
import type { SessionResult } from '../contract/session-input.ts';
import type { Wait } from '../contract/state.ts';
import type { ChildDoneInput, SteerInput } from '../contract/tree.ts';

/** An input from a person or a program. */
export type PersonInput =
  | { type: 'send'; value: SendInput }
  | { type: 'pause'; value: PauseInput }
  | { type: 'resume'; value: ResumeInput }
  | { type: 'cancel'; value: CancelRequest }
  | { type: 'decide'; value: DecideInput }
  | { type: 'resolve'; value: ResolveInput }
  | { type: 'budget'; value: BudgetInput }
  | { type: 'edit'; value: EditInput }
  | { type: 'seal'; value: PauseInput }
  | { type: 'withdraw'; value: WithdrawInput }
  | { type: 'edit_message'; value: EditMessageInput }
  | { type: 'await_effect'; value: WaiterInput }
  | { type: 'effect_done'; value: EffectDoneInput }
  | { type: 'search_attributes'; value: SearchAttributesInput }
  | { type: 'pool_changed'; value: PoolChangedInput }
  | { type: 'child_done'; value: ChildDoneInput }
  | { type: 'rate_turn'; value: RateTurnInput }
  /** A signal that could not be read. The session notes it and changes nothing else. */
  | { type: 'malformed'; name: string; message: string };

/** The outcome of a command. */
export type Outcome =
  | { kind: 'load'; result: ActivityOutcome<LoadResult> }
  | { kind: 'describe'; result: ActivityOutcome<DescribeResult> }
  | { kind: 'model'; result: ActivityOutcome<ModelResult> }
  | { kind: 'reads'; result: ActivityOutcome<ReadsResult> }
  | { kind: 'tool'; result: ActivityOutcome<ToolResult> }
  | { kind: 'attach'; result: ActivityOutcome<AttachResult> }
  | { kind: 'report'; result: ActivityOutcome<void> }
  | { kind: 'verify'; result: ActivityOutcome<VerifyResult> }
  | { kind: 'prepare'; result: ActivityOutcome<PreparedCall> }
  | { kind: 'storePast'; result: ActivityOutcome<StorePastResult> }
  | { kind: 'takenIds'; result: ActivityOutcome<TakenIdsResult> }
  | { kind: 'notify'; result: ActivityOutcome<void> }
  | { kind: 'aside'; result: ActivityOutcome<ModelResult> }
  | { kind: 'draw'; result: ActivityOutcome<DrawResult> }
  | { kind: 'steer'; result: ActivityOutcome<void> }
  | { kind: 'timer' };

/** One input of a session. */
export type Input = PersonInput | { type: 'outcome'; seq: number; outcome: Outcome };

/**
 * A command of a session, such as an activity or a timer. `seq` numbers the commands of a run; it is the activity's id.
 */
export type Command =
  | { kind: 'load'; seq: number; input: LoadInput | LoadEffectsInput }
  | { kind: 'describe'; seq: number; input: DescribeInput }
  | {
      kind: 'model';
      seq: number;
      input: ModelInput;
      heartbeatMs: number;
      /** How long the model call may take. */
      timeoutMs: number;
      /** How long its reads may take. */
      readsMs: number;
      summary: string;
    }
  | {
      kind: 'reads';
      seq: number;
      input: ReadsInput;
      heartbeatMs: number;
      readsMs: number;
      maxAttempts: number;
      summary: string;
    }
  | {
      kind: 'tool';
      seq: number;
      input: ToolInput;
      heartbeatMs: number;
      timeoutMs: number;
      /** 1 for a mutation: its repetition is the session's decision, never Temporal's. */
      maxAttempts: number;
      summary: string;
    }
  | { kind: 'attach'; seq: number; input: AttachInput; heartbeatMs: number; summary: string }
  | { kind: 'report'; seq: number; input: ReportInput; heartbeatMs: number; summary: string }
  | {
      kind: 'verify';
      seq: number;
      input: VerifyInput;
      heartbeatMs: number;
      timeoutMs: number;
      summary: string;
    }
  | { kind: 'prepare'; seq: number; input: PrepareInput; summary: string }
  | { kind: 'storePast'; seq: number; input: StorePastInput; summary: string }
  | { kind: 'takenIds'; seq: number; input: TakenIdsInput; summary: string }
  | { kind: 'notify'; seq: number; input: NotifyInput; summary: string }
  | {
      kind: 'aside';
      seq: number;
      messageId: string;
      input: ModelInput & { aside: AsideQuestion };
      heartbeatMs: number;
      timeoutMs: number;
      summary: string;
    }
  | { kind: 'draw'; seq: number; input: DrawInput; heartbeatMs: number; summary: string }
  | { kind: 'steer'; seq: number; input: SteerInput; heartbeatMs: number; summary: string }
  | { kind: 'timer'; seq: number; ms: number; summary: string }
  /** Asks the command with this number to stop. */
  | { kind: 'cancel'; seq: number; timer: boolean }
  | { kind: 'close'; result: SessionResult }
  /** Ends the run; the session continues in a new run. */
  | { kind: 'continue' };

/** A command that has an outcome. */
export type Issued = Exclude<Command, { kind: 'cancel' } | { kind: 'close' } | { kind: 'continue' }>;

/** A step that the session decides by itself. It is applied to the state like any other event. */
export type Step =
  /** `timer`: the purpose of a timer, if it does not follow from the status of a call or the session. */
  | { type: 'issue'; command: Issued; callId?: string; timer?: 'reminder' | 'pool_recheck' | 'child_recheck' }
  | { type: 'stop'; seq: number }
  | { type: 'take_messages' }
  /** A message gets no side answer. */
  | { type: 'queue_aside'; messageId: string; reason: string }
  | { type: 'append_results' }
  | { type: 'skip_call'; callId: string; reason: string }
  | { type: 'replay_call'; callId: string; from: string }
  | { type: 'replay_carried'; callId: string; effect: CarriedEffect }
  | { type: 'doubt_call'; callId: string; reason: string }
  | { type: 'defer_call'; callId: string; to: string }
  | { type: 'release_call'; callId: string }
  /** Adds the calls that undo effects. */
  | { type: 'begin_undo' }
  /** Marks the effect that this call has undone. */
  | { type: 'mark_undone'; callId: string }
  | { type: 'wait'; wait: Omit<Wait, 'since'> }
  | { type: 'raise_for_summary'; nanoUsd: number; tokens: number }
  | { type: 'continue' }
  | { type: 'stay' }
  | { type: 'close'; result: SessionResult };

/** The session's place in the history: the same in the live workflow and in the fold. */
export interface Moment {
  /** When the workflow task started, in milliseconds since 1970. */
  now: number;
  /** The number of the task's started event, and the bytes of history before that event. */
  historyEvents: number;
  historyBytes: number;
}
