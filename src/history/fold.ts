/**
 * The fold: computes from a Temporal history the state that the live workflow had at each completed workflow task.
 *
 * It runs the same core as the workflow. In addition, it must know in which order Temporal hands a task's events to the
 * workflow. Failed and timed-out tasks contribute nothing. The workflow has not seen the events after the last
 * completed task yet.
 */
import proto from '@temporalio/proto';
import { parseInput } from '../contract/inputs.ts';
import { activityKind, SIGNAL, WORKFLOW } from '../contract/names.ts';
import { sessionInputSchema } from '../contract/session-input.ts';
import type { SessionState } from '../contract/state.ts';
import { advance } from '../session/advance.ts';
import type { Input, Moment } from '../session/events.ts';
import { initialState } from '../session/initial.ts';
import { readInput, readSignal } from '../session/read-input.ts';
import { type Decoding, PayloadReader } from '../temporal/payloads.ts';
import type { HistoryEvent } from '../temporal/read-events.ts';
import { tsToMs } from '../temporal/sdk-time.ts';
import { AskedCommands, type Shown } from './asked.ts';
import {
  activityEnd,
  CLOSING,
  corrupt,
  inOrder,
  outcomeOf,
  type Pending,
  RUN_ENDS,
  type RunEnd,
  saysSomething,
  toNumber,
} from './event-inputs.ts';
import { refuseNewer } from './newer-version.ts';

const { EventType } = proto.temporal.api.enums.v1;
const SIGNALS: readonly string[] = Object.values(SIGNAL);

/** A completed workflow task: a checkpoint. */
export interface FoldedTask {
  /** The number of the task's completed event. Together with the run it names the checkpoint. */
  eventId: number;
  /** ISO 8601: the start of the task. */
  at: string;
  /** The state after the task. The fold goes on to change this object: copy what you keep. */
  state: SessionState;
}

/** Where a fold ended. */
export interface Fold {
  runId: string;
  /** `null` while no workflow task has completed. */
  state: SessionState | null;
  /** The completed event of the last task, 0 before the first. */
  eventId: number;
  end: RunEnd | null;
}

interface OpenTask {
  eventId: number;
  moment: Moment;
  updates: Pending[];
  /** The commands that the task sent to the server, to compare with the core's commands. */
  shown: Shown[];
}

/** Options of a fold. */
export interface FoldOptions {
  /** The run. Pass it if you know it: after a reset, the history names another run. */
  runId?: string;
  /** Called after each completed workflow task. */
  onTask?: (task: FoldedTask) => void | Promise<void>;
  /** The completed event of the last task to fold. Default: the last task of the history. */
  last?: number;
}

/**
 * Folds the events of one run, given in pages.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when the history is not a session's, has an unknown version, or holds
 * commands that the core would not have issued.
 */
export async function foldHistory(
  pages: AsyncIterable<readonly HistoryEvent[]> | Iterable<readonly HistoryEvent[]>,
  decoding: Decoding,
  options: FoldOptions = {},
): Promise<Fold> {
  const folder = new Folder(decoding, options);
  for await (const page of pages) {
    await folder.take(page);
    if (folder.done) return folder.result();
  }
  await folder.closeTask();
  return folder.result();
}

/**
 * A fold that can continue. Give it the events in order, and call {@link Folder.closeTask} after the last event that
 * there is now. When there are more events, give it those.
 */
export class Folder {
  readonly #payloads: PayloadReader;
  readonly #onTask: FoldOptions['onTask'];
  readonly #last: number;
  #runId: string;
  #sessionId = '';
  #firstRunId = '';
  #input: unknown;
  #state: SessionState | null = null;
  #lastTask = 0;
  #end: RunEnd | null = null;
  #started: Moment | null = null;
  /** The latest time that the workflow has seen. */
  #clock = 0;
  #open: OpenTask | null = null;
  #pending: Pending[] = [];
  /** By scheduled event: the command that it belongs to, and the command's kind. */
  readonly #scheduled = new Map<number, { seq: number; type: string }>();
  readonly #asked: AskedCommands = new AskedCommands();
  readonly #admitted = new Map<string, { order: number; name: string; payload: unknown }>();

  constructor(decoding: Decoding, options: FoldOptions = {}) {
    this.#payloads = new PayloadReader(decoding);
    this.#onTask = options.onTask;
    this.#last = options.last ?? Number.POSITIVE_INFINITY;
    this.#runId = options.runId ?? '';
  }

  /** Where the fold is now. It goes on to change the state object: copy what you keep. */
  result(): Fold {
    return { runId: this.#runId, state: this.#state, eventId: this.#lastTask, end: this.#end };
  }

  /** The state at the start of the run, before its first task. */
  start(): SessionState {
    return this.#initial({ now: this.#clock, historyEvents: 0, historyBytes: 0 });
  }

  /** Whether there are inputs that no completed task has taken yet. */
  get awaitsTask(): boolean {
    return this.#pending.length > 0;
  }

  /** Whether the last requested task is folded. */
  get done(): boolean {
    return this.#lastTask >= this.#last;
  }

  /** Takes the next events. @throws as {@link foldHistory}. Then drop this fold */
  async take(events: readonly HistoryEvent[]): Promise<void> {
    await this.#payloads.load(events);
    for (const event of events) {
      if (this.#open !== null && CLOSING.has(event.eventType ?? 0)) {
        const told = this.closeTask();
        // To await each of thousands of tasks would be a good part of the fold's time.
        if (told !== undefined) await told;
        if (this.done) return;
      }
      if (saysSomething(event)) this.#event(event);
    }
  }

  #event(event: HistoryEvent): void {
    const id = toNumber(event.eventId);
    switch (event.eventType) {
      case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: {
        const started = event.workflowExecutionStartedEventAttributes;
        const type = started?.workflowType?.name ?? '';
        if (type !== WORKFLOW.session) throw corrupt(`event ${id} starts a ${type}, not a session`);
        this.#runId ||= started?.originalExecutionRunId ?? '';
        this.#sessionId = started?.workflowId ?? '';
        this.#firstRunId = started?.firstExecutionRunId ?? '';
        this.#input = this.#payloads.first(started?.input);
        this.#clock = tsToMs(event.eventTime);
        return;
      }
      case EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED: {
        this.#started = {
          // A server's clock may step back; a workflow's clock never does.
          now: Math.max(tsToMs(event.eventTime), this.#clock),
          historyEvents: id,
          historyBytes: toNumber(event.workflowTaskStartedEventAttributes?.historySizeBytes),
        };
        return;
      }
      case EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
        if (this.#started === null) throw corrupt(`event ${id} completes a task that did not start`);
        this.#clock = this.#started.now;
        this.#open = {
          eventId: id,
          moment: this.#started,
          updates: [],
          shown: [],
        };
        return;
      case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: {
        const { activityId, activityType } = event.activityTaskScheduledEventAttributes ?? {};
        const type = activityKind(activityType?.name) ?? activityType?.name ?? '';
        this.#scheduled.set(id, { seq: Number(activityId), type });
        this.#open?.shown.push({ eventId: id, type, id: activityId ?? '' });
        return;
      }
      case EventType.EVENT_TYPE_TIMER_STARTED: {
        const { timerId } = event.timerStartedEventAttributes ?? {};
        this.#open?.shown.push({ eventId: id, type: 'timer', id: timerId ?? '' });
        return;
      }
      case EventType.EVENT_TYPE_MARKER_RECORDED: {
        refuseNewer(event, this.#payloads);
        return;
      }
      case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
        this.#updateAccepted(event);
        return;
      case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED: {
        const request = event.workflowExecutionUpdateAdmittedEventAttributes?.request;
        this.#admitted.set(request?.meta?.updateId ?? '', {
          order: id,
          name: request?.input?.name ?? '',
          payload: this.#payloads.first(request?.input?.args),
        });
        return;
      }
      case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: {
        const signal = event.workflowExecutionSignaledEventAttributes;
        const name = signal?.signalName ?? '';
        // The workflow buffers a signal for which it has no handler: it changes nothing.
        if (!SIGNALS.includes(name)) return;
        this.#pending.push({
          order: id,
          name,
          input: readSignal(name, this.#payloads.firstOrUnreadable(signal?.input)),
        });
        return;
      }
      case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
        this.#pending.push({
          order: id,
          name: '',
          input: { type: 'cancel', value: { by: 'temporal', reason: 'cancelled by a Temporal client' } },
        });
        return;
      case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
      case EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
      case EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
      case EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
        this.#activityEnded(id, event);
        return;
      case EventType.EVENT_TYPE_TIMER_FIRED: {
        const seq = this.#asked.timer(event.timerFiredEventAttributes?.timerId ?? '');
        if (seq === undefined) throw corrupt(`event ${id} fires a timer that the session did not start`);
        this.#pending.push({
          order: id,
          name: '',
          input: { type: 'outcome', seq, outcome: { kind: 'timer' } },
        });
        return;
      }
      default: {
        const end = RUN_ENDS.get(event.eventType ?? 0);
        if (end !== undefined) this.#end = end;
        else refuseNewer(event, this.#payloads);
      }
    }
  }

  #activityEnded(eventId: number, event: HistoryEvent): void {
    const end = activityEnd(event, this.#payloads);
    const scheduled = this.#scheduled.get(end?.scheduledEventId ?? 0);
    if (end === null || scheduled === undefined) {
      throw corrupt(`event ${eventId} ends an activity that was not scheduled`);
    }
    const outcome = outcomeOf(scheduled.type, end.result);
    this.#pending.push({ order: eventId, name: '', input: { type: 'outcome', seq: scheduled.seq, outcome } });
  }

  #updateAccepted(event: HistoryEvent): void {
    const accepted = event.workflowExecutionUpdateAcceptedEventAttributes;
    const admitted = this.#admitted.get(accepted?.protocolInstanceId ?? '');
    const name = accepted?.acceptedRequest?.input?.name ?? admitted?.name ?? '';
    const payload = accepted?.acceptedRequest
      ? this.#payloads.first(accepted.acceptedRequest.input?.args)
      : admitted?.payload;
    const read = readInput(name, payload);
    if (!read.ok)
      throw corrupt(
        `event ${toNumber(event.eventId)} accepts an update that cannot be read: ${read.message}`,
      );
    const order = admitted?.order ?? toNumber(accepted?.acceptedRequestSequencingEventId) + 0.5;
    this.#open?.updates.push({ order, name, input: read.input });
  }

  /** Folds the completed task, when all events that it wrote are known. @returns what `onTask` returns */
  closeTask(): void | Promise<void> {
    const task = this.#open;
    if (task === null) return;
    this.#open = null;
    this.#started = null;
    this.#state ??= this.#initial(task.moment);
    const state = this.#state;
    const pending = [...this.#pending, ...task.updates];
    const first = this.#lastTask === 0;
    this.#pending = [];
    // A task that brings nothing does not wake the session.
    const due = pending.length > 0 || first ? this.#apply(task, inOrder(pending, first)) : [];
    // The task that ends a run need not send commands that its end makes pointless.
    this.#asked.check(task.eventId, task.shown, this.#end === null ? due : []);
    this.#lastTask = task.eventId;
    return this.#onTask?.({ eventId: task.eventId, at: new Date(task.moment.now).toISOString(), state });
  }

  #initial(moment: Moment): SessionState {
    const parsed = parseInput(sessionInputSchema, this.#input);
    if (!parsed.ok) throw corrupt(`the input of the session, event 1, cannot be read: ${parsed.message}`);
    const identity = { sessionId: this.#sessionId, runId: this.#runId, firstRunId: this.#firstRunId };
    return initialState(identity, parsed.value, moment);
  }

  /** Applies a task's inputs. @returns the numbers of the commands that the server was asked for */
  #apply({ eventId, moment }: OpenTask, inputs: readonly Input[]): number[] {
    const state = this.#state as SessionState;
    try {
      return this.#asked.take(advance(state, inputs, moment).commands);
    } catch (error) {
      // The live session would have failed such a task, so another program completed it.
      throw corrupt(`task ${eventId} has data that the session cannot use: ${String(error)}`, error);
    }
  }
}
