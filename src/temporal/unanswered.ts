/** Why a workflow does not answer: what the server knows of its task, its history and its task queue. */
import { type Client, WorkflowUpdateRPCTimeoutOrCancelledError } from '@temporalio/client';
import proto from '@temporalio/proto';
import { type ErrorCode, isPerdureError, PerdureError } from '../contract/errors.ts';
import { isUnprocessed } from './errors.ts';
import { type Poller, pollersSeen } from './pollers.ts';
import { tsToMs } from './sdk-time.ts';

const { EventType, PendingWorkflowTaskState, WorkflowTaskFailedCause } = proto.temporal.api.enums.v1;
const ENDS = {
  completed: EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
  failed: EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
  timedOut: EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
} as const;
/** The server ends a task itself when more has come meanwhile. */
const UNHANDLED = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND;
/** How long the server may take to say what it knows, in milliseconds. */
const LOOK_MS = 2_000;
/** Events of the end of a history that are looked at; so many without a completed task are a flood. */
const TAIL = 300;
/** Events from which on a replay may be what takes so long. */
const LONG_HISTORY = 2_000;
const MAY_BE_DONE = 'What was asked may still be done: look before you ask again';

/** What keeps a workflow from answering. */
export interface Unanswered {
  code: ErrorCode;
  /** A sentence without its end, which begins with the subject. */
  message: string;
  details: Record<string, unknown>;
}

/** A workflow that was asked. */
interface Asked {
  workflowId: string;
  /** For people: `session x`. */
  what: string;
  /** Milliseconds since 1970. */
  askedMs: number;
}

/** A workflow, as the server describes it. */
export interface Looked {
  /** For people: `session x`. */
  what: string;
  taskQueue: string;
  historyEvents: number;
  task: { started: boolean; sinceMs: number; attempt: number } | null;
  tail: Tail;
  poller: Poller | undefined;
  askedMs: number;
}

/** The end of a history: how its last workflow task ended, and what has come since one was completed. */
interface Tail {
  problem: string | null;
  waiting: number;
}

/** Replaces an error of code `NO_WORKER` by one that says what is the matter; every other error passes. */
export async function explained(
  client: Client,
  { workflowId, what, askedMs }: Asked,
  error: unknown,
): Promise<unknown> {
  // What the server has dropped was not done, and says so.
  if (!isPerdureError(error, 'NO_WORKER') || isUnprocessed(error.cause)) return error;
  let found: Unanswered;
  try {
    found = await client.withDeadline(Date.now() + LOOK_MS, () =>
      whyUnanswered(client, { workflowId, what, askedMs }),
    );
  } catch {
    const message = 'The Temporal server cannot be reached. Start one';
    return new PerdureError('SERVER_UNAVAILABLE', message, { cause: error.cause });
  }
  const { code, details } = found;
  // Its own words say what to do: a put under the same id, a worker on the saver's task queue.
  const message = code === 'NO_WORKER' ? error.message : found.message;
  const isLate = error.cause instanceof WorkflowUpdateRPCTimeoutOrCancelledError;
  return new PerdureError(code, isLate && code !== 'NO_WORKER' ? `${message}. ${MAY_BE_DONE}` : message, {
    details: { ...error.details, ...details },
    cause: error.cause,
  });
}

/** Why a running workflow does not answer. */
export async function whyUnanswered(
  client: Client,
  { workflowId, what, askedMs }: Asked,
): Promise<Unanswered> {
  const { namespace } = client.options;
  const execution = { workflowId };
  const described = await client.workflowService.describeWorkflowExecution({ namespace, execution });
  const info = described.workflowExecutionInfo;
  const taskQueue = described.executionConfig?.taskQueue?.name ?? '';
  const pending = described.pendingWorkflowTask ?? null;
  const started = pending?.state === PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_STARTED;
  const [tail, pollers] = await Promise.all([
    readTail(client, workflowId, pending !== null),
    pollersSeen(client.workflowService, namespace, taskQueue, 'workflow'),
  ]);
  return judge({
    what,
    taskQueue,
    historyEvents: Number(info?.historyLength ?? 0),
    task:
      pending === null
        ? null
        : {
            started,
            sinceMs: tsToMs(started ? pending.startedTime : pending.scheduledTime),
            attempt: pending.attempt ?? 1,
          },
    tail,
    poller: pollers[0],
    askedMs,
  });
}

async function readTail(client: Client, workflowId: string, isPending: boolean): Promise<Tail> {
  if (!isPending) return { problem: null, waiting: 0 };
  const { history } = await client.workflowService.getWorkflowExecutionHistoryReverse({
    namespace: client.options.namespace,
    execution: { workflowId },
    maximumPageSize: TAIL,
  });
  const tail: Tail = { problem: null, waiting: 0 };
  for (const event of history?.events ?? []) {
    const { eventType, workflowTaskFailedEventAttributes: failed } = event;
    if (eventType === ENDS.completed) break;
    tail.waiting += 1;
    if (eventType === ENDS.failed && failed?.cause !== UNHANDLED) {
      tail.problem ??= failed?.failure?.message ?? 'unknown';
    }
    // What has failed before a later task timed out is not what is the matter now.
    if (eventType === ENDS.timedOut) tail.problem ??= '';
  }
  return { ...tail, problem: tail.problem === '' ? null : tail.problem };
}

/** What the facts mean. */
export function judge(looked: Looked): Unanswered {
  const { what, taskQueue, task, tail, historyEvents, poller } = looked;
  const details = {
    taskQueue,
    historyEvents,
    waitingEvents: tail.waiting,
    task,
    lastPoll: poller === undefined ? null : { ...poller },
  };
  const found = (code: ErrorCode, message: string): Unanswered => ({ code, message, details });
  const seconds = (sinceMs: number): string => `${Math.max(0, Math.round((Date.now() - sinceMs) / 1_000))} s`;
  if (tail.problem !== null) {
    return found(
      'TASK_FAILING',
      `The workflow task of ${what} fails, at attempt ${task?.attempt ?? 1}: ${tail.problem.slice(0, 500)}. Read the log of the worker, and deploy a version that can go on`,
    );
  }
  if (tail.waiting >= TAIL) {
    return found(
      'FLOODED',
      `More than ${TAIL} events have come for ${what} that no workflow task has taken up yet. Send less at once, and ask again`,
    );
  }
  if (task?.started === true) {
    const took = `A worker took the workflow task of ${what} ${seconds(task.sinceMs)} ago`;
    return historyEvents >= LONG_HISTORY
      ? found(
          'REPLAY_SLOW',
          `${took}, and reads its history of ${historyEvents} events at attempt ${task.attempt}. Ask again; if it does not end, start the session with a longer workflowTaskTimeout`,
        )
      : found(
          'WORKER_LOST',
          `${took} and has not answered, at attempt ${task.attempt}: it died or hangs. Temporal gives the task to another worker when its time is over. Ask again`,
        );
  }
  const since = task === null ? looked.askedMs : task.sinceMs;
  const alive = poller !== undefined && poller.seenMs >= since;
  if (!alive) {
    const last =
      poller === undefined
        ? ''
        : `; the last one, ${poller.identity}, was seen ${seconds(poller.seenMs)} ago`;
    return found('NO_WORKER', `No worker asks for work on task queue ${taskQueue}${last}. Start one`);
  }
  if (task === null && historyEvents >= LONG_HISTORY) {
    return found(
      'REPLAY_SLOW',
      `A worker has not read the ${historyEvents} events of ${what} in time. Ask again`,
    );
  }
  return found(
    'WORKER_BUSY',
    `The workers of task queue ${taskQueue} are busy: ${task === null ? `none has answered for ${what} in time` : `the workflow task of ${what} has waited for ${seconds(task.sinceMs)}`}. Ask again, or start more of them`,
  );
}
