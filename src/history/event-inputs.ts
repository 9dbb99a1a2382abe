/**
 * Turns the events of a history into inputs of the session, in the order in which Temporal hands a task's events to the
 * workflow: signals and updates by sequence, then results and timers.
 */
import proto from '@temporalio/proto';
import type { SessionActivities } from '../contract/activities.ts';
import { PerdureError } from '../contract/errors.ts';
import { HANDLER_ORDER } from '../contract/names.ts';
import type { Input, Outcome } from '../session/events.ts';
import type { PayloadReader } from '../temporal/payloads.ts';
import type { HistoryEvent } from '../temporal/read-events.ts';

const { EventType } = proto.temporal.api.enums.v1;

/** How a run ended, in Temporal's words. */
export type RunEnd = 'completed' | 'failed' | 'canceled' | 'terminated' | 'timed_out' | 'continued_as_new';

/** An input that a task will bring. */
export interface Pending {
  /** Its place in the history. An update's place is just after the event that it was sequenced after. */
  order: number;
  /** The name of the signal or update; empty for other inputs. */
  name: string;
  input: Input;
}

/** How an activity ended, with the id of the event that scheduled it. */
export interface ActivityEnd {
  scheduledEventId: number;
  result: { ok: true; value: unknown } | { ok: false; failure: unknown };
}

/** Reads an activity's end. @returns `null` for every other event */
export function activityEnd(event: HistoryEvent, payloads: PayloadReader): ActivityEnd | null {
  const completed = event.activityTaskCompletedEventAttributes;
  if (completed) {
    const value = payloads.first(completed.result);
    return { scheduledEventId: toNumber(completed.scheduledEventId), result: { ok: true, value } };
  }
  const failed = event.activityTaskFailedEventAttributes ?? event.activityTaskTimedOutEventAttributes;
  if (failed) {
    const failure = payloads.failure(failed.failure);
    return { scheduledEventId: toNumber(failed.scheduledEventId), result: { ok: false, failure } };
  }
  const cancelled = event.activityTaskCanceledEventAttributes;
  if (!cancelled) return null;
  const failure = { kind: 'cancelled', message: 'cancelled' };
  return { scheduledEventId: toNumber(cancelled.scheduledEventId), result: { ok: false, failure } };
}

/** The outcome of an activity of this type. The result is not checked: the core finds errors when it reads it. */
export function outcomeOf(activityType: string, result: ActivityEnd['result']): Outcome {
  return { kind: activityType as keyof SessionActivities, result } as Outcome;
}

/** Events that come only after everything that the previous task wrote. */
export const CLOSING: ReadonlySet<number> = new Set([
  EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT,
  EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED,
  EventType.EVENT_TYPE_TIMER_FIRED,
]);

/** Whether the fold needs an event. It does not need a third of the events. */
export function saysSomething({ eventType }: HistoryEvent): boolean {
  return (
    eventType !== EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED &&
    eventType !== EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED
  );
}

/** Events that end a run. */
export const RUN_ENDS: ReadonlyMap<number, RunEnd> = new Map<number, RunEnd>([
  [EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, 'completed'],
  [EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, 'failed'],
  [EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, 'canceled'],
  [EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, 'terminated'],
  [EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, 'timed_out'],
  [EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, 'continued_as_new'],
]);

/** The inputs of one activation in the order in which the live workflow applies them. */
export function inOrder(pending: Pending[], firstTask: boolean): Input[] {
  const rank = ({ input }: Pending): number => {
    if (input.type === 'outcome') return input.seq;
    return input.type === 'cancel' && input.value.by === 'temporal' ? 0 : -1;
  };
  return pending
    .sort((a, b) => {
      const byRank = rank(a) - rank(b);
      if (byRank !== 0) return byRank;
      // Inputs from before the workflow's first task wait in buffers, which the SDK empties handler by handler.
      const byHandler = firstTask ? HANDLER_ORDER.indexOf(a.name) - HANDLER_ORDER.indexOf(b.name) : 0;
      return byHandler || a.order - b.order;
    })
    .map(({ input }) => input);
}

type Int64 = { toNumber(): number } | null | undefined;

/** Converts a 64-bit number of the wire. `Number()` would be slower: it converts to text first. */
export function toNumber(value: Int64): number {
  return value?.toNumber() ?? 0;
}

export function corrupt(message: string, cause?: unknown): PerdureError {
  return new PerdureError(
    'CHECKPOINT_CORRUPTION',
    `The state cannot be computed from the history: ${message}`,
    { cause },
  );
}
