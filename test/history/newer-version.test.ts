/**
 * Histories as a newer version of the program could have written them: the fold refuses what it does not know, and
 * says where. Each is a stored history with one change.
 */

import { defaultPayloadConverter } from '@temporalio/common';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import { ACTIVITY } from '../../src/contract/names.ts';
import { foldHistory } from '../../src/history/index.ts';
import type { HistoryEvent } from '../../src/temporal/index.ts';
import { replay } from '../session/support/sound.ts';
import { PLAIN, readStored } from './stored.ts';

const { EventType } = proto.temporal.api.enums.v1;
const { HistoryEvent: Event } = proto.temporal.api.history.v1;
type Payloads = proto.temporal.api.common.v1.IPayloads | null | undefined;

/** A change of a history, and the event that it is seen at. */
type Change = (events: HistoryEvent[]) => HistoryEvent;

const numberOf = ({ eventId }: HistoryEvent): number => Number(eventId);
const payloadsOf = (value: unknown): NonNullable<Payloads> => ({
  payloads: [defaultPayloadConverter.toPayload(value) ?? {}],
});

/** The first event that matches. */
function first(events: HistoryEvent[], matches: (event: HistoryEvent) => unknown): HistoryEvent {
  const found = events.find(matches);
  if (found === undefined) throw new Error('the stored history has no such event');
  return found;
}

/** Puts an event behind another one, under a number that no other event has. */
function insertAfter(events: HistoryEvent[], before: HistoryEvent, added: HistoryEvent): HistoryEvent {
  const event = Event.fromObject({ ...added, eventId: 9_001, eventTime: before.eventTime });
  events.splice(events.indexOf(before) + 1, 0, event);
  return event;
}

function change(payloads: Payloads, edit: (value: Record<string, unknown>) => void): void {
  const [payload] = payloads?.payloads ?? [];
  if (!payload) throw new Error('the event holds no payload');
  const value = defaultPayloadConverter.fromPayload<Record<string, unknown>>(payload);
  edit(value);
  Object.assign(payload, defaultPayloadConverter.toPayload(value));
}

const scheduled = (type: string) => (event: HistoryEvent) =>
  event.activityTaskScheduledEventAttributes?.activityType?.name === `perdure.${type}`;
const completedTask = (event: HistoryEvent): unknown => event.workflowTaskCompletedEventAttributes;

/** Gives the first activity of a type another. */
function retyped(events: HistoryEvent[], from: string, name: string): HistoryEvent {
  const event = first(events, scheduled(from));
  Object.assign(event.activityTaskScheduledEventAttributes ?? {}, {
    activityType: { name: name in ACTIVITY ? `perdure.${name}` : name },
  });
  return event;
}

/** The end of the first activity of a type. */
function endOf(events: HistoryEvent[], type: string): HistoryEvent {
  const { eventId } = first(events, scheduled(type));
  return first(events, ({ activityTaskCompletedEventAttributes: end }) =>
    end?.scheduledEventId ? Number(end.scheduledEventId) === Number(eventId) : false,
  );
}

/** The first task that has been completed after an event. */
function taskAfter(events: HistoryEvent[], event: HistoryEvent): HistoryEvent {
  return first(events.slice(events.indexOf(event)), completedTask);
}

/** An event that the first completed task writes, too. */
function inFirstTask(added: HistoryEvent): Change {
  return (events) => insertAfter(events, first(events, completedTask), added);
}

function withMarker(markerName: string, details: Record<string, NonNullable<Payloads>>): Change {
  return inFirstTask({
    eventType: EventType.EVENT_TYPE_MARKER_RECORDED,
    markerRecordedEventAttributes: { markerName, details },
  });
}

const patchOf = (deprecated: boolean): Change =>
  withMarker('core_patch', { 'patch-data': payloadsOf({ id: 'sleep-less', deprecated }) });

const CHANGES: Readonly<Record<string, { file?: string; says: string; make: Change }>> = {
  'a definition of schema 2': {
    says: 'has schema 2',
    make: (events) => {
      const end = endOf(events, 'describe');
      change(end.activityTaskCompletedEventAttributes?.result, (value) => {
        value['manifest'] = { ...(value['manifest'] as object), schema: 2 };
      });
      return taskAfter(events, end);
    },
  },
  'a definition of schema 2 that a model call has brought': {
    says: 'has schema 2',
    make: (events) => {
      const end = endOf(events, 'model');
      change(end.activityTaskCompletedEventAttributes?.result, (value) => {
        value['kind'] = 'manifest';
        value['manifest'] = { schema: 2, agent: 'story' };
      });
      return taskAfter(events, end);
    },
  },
  'a patch': { says: "the patch 'sleep-less'", make: patchOf(false) },
  'a patch that is deprecated already': { says: "the patch 'sleep-less'", make: patchOf(true) },
  'a patch without a name': { says: "the patch ''", make: withMarker('core_patch', {}) },
  'a marker of another kind': { says: 'a marker side_effect', make: withMarker('side_effect', {}) },
  'one activity more': {
    says: 'schedules tool as activity 77',
    make: inFirstTask({
      eventType: EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
      activityTaskScheduledEventAttributes: { activityId: '77', activityType: { name: 'perdure.tool' } },
    }),
  },
  'an activity of a type that is not known': {
    says: 'schedules recall as activity 2',
    make: (events) => retyped(events, 'model', 'recall'),
  },
  'an activity in the place of another one': {
    says: 'schedules model as activity 1',
    make: (events) => retyped(events, 'describe', 'model'),
  },
  'one activity less': {
    says: 'a model that the session asked for',
    make: (events) => {
      const event = first(events, scheduled('model'));
      const task = first(events, ({ eventId }) => Number(eventId) === numberOf(event) - 1);
      events.splice(events.indexOf(event), 1);
      return task;
    },
  },
  'an end of an activity that was never scheduled': {
    says: 'ends an activity that was not scheduled',
    make: (events) => {
      const end = endOf(events, 'model');
      const { result } = end.activityTaskCompletedEventAttributes ?? {};
      return insertAfter(events, end, {
        eventType: EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
        activityTaskCompletedEventAttributes: { result: result ?? null },
      });
    },
  },
  'one timer more': {
    says: 'starts timer 1',
    make: inFirstTask({
      eventType: EventType.EVENT_TYPE_TIMER_STARTED,
      timerStartedEventAttributes: { timerId: '1' },
    }),
  },
  'one timer less': {
    file: 'effects-0.1.json',
    says: 'a timer that the session asked for',
    make: (events) => {
      const event = first(events, ({ timerStartedEventAttributes: timer }) => timer);
      const task = first(events, ({ eventId }) => Number(eventId) === numberOf(event) - 1);
      events.splice(events.indexOf(event), 1);
      return task;
    },
  },
  'a timer that fires and was not started': {
    says: 'fires a timer',
    make: (events) =>
      insertAfter(events, first(events, scheduled('describe')), {
        eventType: EventType.EVENT_TYPE_TIMER_FIRED,
        timerFiredEventAttributes: { timerId: '1' },
      }),
  },
  'a child workflow': {
    says: 'starts a child workflow',
    make: inFirstTask({
      eventType: EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
      startChildWorkflowExecutionInitiatedEventAttributes: { workflowId: 'helper' },
    }),
  },
  'an update of a name that is not known': {
    says: 'no signal or update named rethink',
    make: inFirstTask({
      eventType: EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
      workflowExecutionUpdateAcceptedEventAttributes: {
        acceptedRequest: { input: { name: 'rethink', args: payloadsOf({}) } },
      },
    }),
  },
  'an input with an effect of schema 2': {
    says: 'effect.manifest: unknown manifest version',
    make: (events) => {
      const [started] = events as [HistoryEvent];
      change(started.workflowExecutionStartedEventAttributes?.input, (value) => {
        value['effect'] = {
          tool: 'pay',
          args: {},
          argsDigest: '',
          idempotencyKey: 'k',
          requestedBy: 's/c',
          manifest: { schema: 2 },
          searchAttributes: [],
        };
      });
      return started;
    },
  },
  'an input with an origin that is not known': {
    says: 'origin.kind',
    make: (events) => {
      const [started] = events as [HistoryEvent];
      change(started.workflowExecutionStartedEventAttributes?.input, (value) => {
        value['origin'] = {
          kind: 'merge',
          sessionId: 's',
          runId: 'r',
          eventId: 4,
          by: 'ada',
          reason: '',
        };
      });
      return started;
    },
  },
};

test.each(Object.entries(CHANGES))('%s is refused', async (_, { file = 'refund-0.1.json', says, make }) => {
  const { events } = readStored(file).decoded;
  const at = numberOf(make(events));
  const error = await foldHistory([events], PLAIN).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ name: 'PerdureError', code: 'CHECKPOINT_CORRUPTION' });
  expect(String(error)).toContain(says);
  expect(String(error)).toMatch(new RegExp(`\\b(event|task) ${at}\\b`));
});

test('the workflow itself does not take a definition of schema 2', async () => {
  const { state, decoded } = readStored('refund-0.1.json');
  CHANGES['a definition of schema 2']?.make(decoded.events);
  await expect(replay(decoded, state?.sessionId ?? '')).rejects.toThrow('has schema 2');
});

test('checkpoints before the change still fold', async () => {
  const { events } = readStored('refund-0.1.json').decoded;
  CHANGES['a definition of schema 2']?.make(events);
  const task = first(events, completedTask);
  const { state, eventId } = await foldHistory([events], PLAIN, { last: numberOf(task) });
  expect(eventId).toBe(numberOf(task));
  expect(state?.inFlight).toMatchObject([{ kind: 'describe' }]);
});

test('a signal that no handler takes changes nothing', async () => {
  const { state: stored, decoded } = readStored('refund-0.1.json');
  insertAfter(decoded.events, endOf(decoded.events, 'describe'), {
    eventType: EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
    workflowExecutionSignaledEventAttributes: { signalName: 'rethink', input: payloadsOf({ schema: 2 }) },
  });
  const { state } = await foldHistory([decoded.events], PLAIN);
  expect(state).toMatchObject(stored ?? {});
});
