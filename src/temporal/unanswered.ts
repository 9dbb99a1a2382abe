/** Finds out why a workflow does not answer, from its workflow task, its history and its task queue. */
import { type Client, WorkflowUpdateRPCTimeoutOrCancelledError } from '@temporalio/client';
import proto from '@temporalio/proto';
import { type ErrorCode, isPerdureError, PerdureError } from '../contract/errors.ts';
import { isUnprocessed } from './errors.ts';
import { failureMessage } from './payloads.ts';
import { isAlive, isVersion, type Poller, pollersSeen, type WorkerVersion } from './pollers.ts';
import { readEvents } from './read-events.ts';
import { tsToMs } from './sdk-time.ts';
import { pinnedTo, versioningOf } from './versions.ts';

const { EventType, PendingWorkflowTaskState, WorkflowTaskFailedCause } = proto.temporal.api.enums.v1;
const ENDS = {
  completed: EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
  failed: EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
  timedOut: EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
} as const;
/** The server ends a task with this cause when more events have arrived. */
const UNHANDLED = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND;
const BAD_ATTRIBUTE = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES;
/** How long the server may take to answer, in milliseconds. */
const LOOK_MS = 2_000;
/** How many events are read from the end of a history. So many without a completed workflow task are a flood. */
const TAIL = 300;
/**
 * How long the tail, and a page of it, may take, in milliseconds. Temporal's client needs two seconds to give up a page
 * that is too large.
 */
const TAIL_MS = { all: 8_000, page: 500 } as const;
/** From so many events on, a replay may take long. */
const LONG_HISTORY = 2_000;
const MAY_BE_DONE = 'The request may still take effect: read the state before you try again';

/** Why a workflow does not answer. */
export interface Unanswered {
  code: ErrorCode;
  /** A sentence without its full stop. */
  message: string;
  details: Record<string, unknown>;
  /** Only workers of one version would help, and `message` says so. */
  isVersioned?: true;
}

interface Asked {
  workflowId: string;
  /** For people: `session x`. */
  what: string;
  /** Milliseconds since 1970. */
  askedMs: number;
}

export interface Looked {
  /** For people: `session x`. */
  what: string;
  taskQueue: string;
  /** The version whose workers get its tasks, and the build ids of other workers. Absent: no worker has a version. */
  serving?: { version: WorkerVersion | null; isPinned: boolean; others: readonly string[] };
  historyEvents: number;
  task: { started: boolean; sinceMs: number; attempt: number } | null;
  tail: Tail;
  poller: Pick<Poller, 'identity' | 'seenMs'> | undefined;
  askedMs: number;
}

/** The end of a history: how its last workflow task ended, and the events since the last completed one. */
interface Tail {
  problem: string | null;
  /** The task failed because of a search attribute that the server does not know. */
  badAttribute?: boolean;
  waiting: number;
}

/** Replaces a `NO_WORKER` error with a more precise one. Returns other errors as they are. */
export async function explained(
  client: Client,
  { workflowId, what, askedMs }: Asked,
  error: unknown,
): Promise<unknown> {
  // The server has dropped the request, and the error says so.
  if (!isPerdureError(error, 'NO_WORKER') || isUnprocessed(error.cause)) return error;
  let found: Unanswered;
  try {
    found = await client.withDeadline(Date.now() + LOOK_MS, () =>
      whyUnanswered(client, { workflowId, what, askedMs }),
    );
  } catch {
    const message = 'The Temporal server cannot be reached. Start one: perdure dev';
    return new PerdureError('SERVER_UNAVAILABLE', message, { cause: error.cause });
  }
  const { code, details, isVersioned } = found;
  // The caller's own message says what to do, unless only one version would help.
  const message = code === 'NO_WORKER' && isVersioned !== true ? error.message : found.message;
  const isLate = error.cause instanceof WorkflowUpdateRPCTimeoutOrCancelledError;
  return new PerdureError(
    code,
    isLate && message !== error.message ? `${message}. ${MAY_BE_DONE}` : message,
    {
      details: { ...error.details, ...details },
      cause: error.cause,
    },
  );
}

export async function whyUnanswered(
  client: Client,
  { workflowId, what, askedMs }: Asked,
): Promise<Unanswered> {
  const { namespace } = client.options;
  const execution = { workflowId };
  const described = await client.workflowService.describeWorkflowExecution({ namespace, execution });
  const info = described.workflowExecutionInfo;
  const taskQueue = described.executionConfig?.taskQueue?.name ?? '';
  const pinned = pinnedTo(versioningOf(info?.versioningInfo));
  const pending = described.pendingWorkflowTask ?? null;
  const started = pending?.state === PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_STARTED;
  const [tail, { pollers, current }] = await Promise.all([
    readTail(client, workflowId, pending !== null),
    pollersSeen(client.workflowService, namespace, taskQueue, 'workflow'),
  ]);
  return judge({
    what,
    taskQueue,
    serving: { version: pinned ?? current, isPinned: pinned !== null, others: otherVersions(pollers) },
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
    poller: pollers.find((poller) => serves(poller, pinned ?? current)),
    askedMs,
  });
}

async function readTail(client: Client, workflowId: string, isPending: boolean): Promise<Tail> {
  const tail: Tail = { problem: null, waiting: 0 };
  if (!isPending) return tail;
  const options = { backwards: true, pageMs: TAIL_MS.page };
  const read = async (): Promise<void> => {
    for await (const event of readEvents(client, { workflowId }, options)) {
      const { eventType, workflowTaskFailedEventAttributes: failed } = event;
      if (eventType === ENDS.completed || tail.waiting === TAIL) return;
      tail.waiting += 1;
      if (eventType === ENDS.failed && failed?.cause !== UNHANDLED) {
        tail.badAttribute ??= failed?.cause === BAD_ATTRIBUTE;
        tail.problem ??= (await failureMessage(client.options, failed?.failure)) || 'unknown';
      }
      // An earlier failure is not the present problem.
      if (eventType === ENDS.timedOut) tail.problem ??= '';
    }
  };
  await client.withDeadline(Date.now() + TAIL_MS.all, read);
  return { ...tail, problem: tail.problem === '' ? null : tail.problem };
}

/** Whether a worker gets the tasks of this version. `null` stands for workflows without a version. */
function serves(poller: Poller, version: WorkerVersion | null): boolean {
  return version === null ? poller.version === null : isVersion(poller.version, version);
}

function otherVersions(pollers: readonly Poller[]): string[] {
  return [...new Set(pollers.filter(isAlive).flatMap(({ version }) => version?.buildId ?? []))];
}

/** Why there is no worker of the right version; `null` when versions play no part. */
function unserved(
  { version, isPinned, others }: NonNullable<Looked['serving']>,
  what: string,
  taskQueue: string,
): string | null {
  if (version === null) {
    if (others.length === 0) return null;
    const known = `The workers of task queue ${taskQueue} have versions (${others.join(', ')}), and none is current`;
    return `${known}. Make one current: perdure versions set-current <build>`;
  }
  const { deployment, buildId } = version;
  const none = `no worker of it polls task queue ${taskQueue}`;
  return isPinned
    ? `${what} is pinned to version ${buildId} of ${deployment}, and ${none}. Start one, or move the session: perdure versions move --help`
    : `Version ${buildId} of ${deployment} is current, and ${none}. Start one, or make another version current: perdure versions --help`;
}

/** Turns the facts into an error. */
export function judge(looked: Looked): Unanswered {
  const { what, taskQueue, serving, task, tail, historyEvents, poller } = looked;
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
    const advice =
      tail.badAttribute === true
        ? 'Register it again: perdure setup'
        : "Read the worker's log, and deploy a version that can continue the session";
    return found(
      'TASK_FAILING',
      `The workflow task of ${what} fails at attempt ${task?.attempt ?? 1}: ${tail.problem.slice(0, 500)}. ${advice}`,
    );
  }
  if (tail.waiting >= TAIL) {
    return found(
      'FLOODED',
      `More than ${TAIL} events wait for a workflow task of ${what}. Send fewer at once, and try again`,
    );
  }
  if (task?.started === true) {
    const took = `A worker took the workflow task of ${what} ${seconds(task.sinceMs)} ago`;
    return historyEvents >= LONG_HISTORY
      ? found(
          'REPLAY_SLOW',
          `${took}, and replays its history of ${historyEvents} events at attempt ${task.attempt}. Try again. If it never finishes, start sessions with a longer workflowTaskTimeout`,
        )
      : found(
          'WORKER_LOST',
          `${took} and has not answered, at attempt ${task.attempt}: it died or hangs. After its timeout, Temporal gives the task to another worker. Try again`,
        );
  }
  const since = task === null ? looked.askedMs : task.sinceMs;
  const alive = poller !== undefined && poller.seenMs >= since;
  if (!alive) {
    const last =
      poller === undefined
        ? ''
        : `; the last one, ${poller.identity}, was seen ${seconds(poller.seenMs)} ago`;
    const versioned = serving && unserved(serving, what, taskQueue);
    if (versioned) return { ...found('NO_WORKER', versioned), isVersioned: true };
    return found(
      'NO_WORKER',
      `No worker polls task queue ${taskQueue}${last}. Start one: perdure worker <module>`,
    );
  }
  if (task === null && historyEvents >= LONG_HISTORY) {
    return found(
      'REPLAY_SLOW',
      `A worker did not replay the ${historyEvents} events of ${what} in time. Try again`,
    );
  }
  return found(
    'WORKER_BUSY',
    `The workers of task queue ${taskQueue} are busy: ${task === null ? `none answered for ${what} in time` : `the workflow task of ${what} has waited for ${seconds(task.sinceMs)}`}. Try again, or start more workers`,
  );
}
