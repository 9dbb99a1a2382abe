/** Executions on the Temporal server. */
import type { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { isPerdureError, messageOf, PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import { readError } from './errors.ts';
import {
  firstValue,
  type HistoryEvent,
  isNotFound,
  orNull,
  previousRun,
  readPages,
  readStart,
} from './index.ts';
import { tsToMs } from './sdk-time.ts';

const { WORKFLOW_EXECUTION_STATUS_RUNNING: RUNNING, WORKFLOW_EXECUTION_STATUS_COMPLETED: COMPLETED } =
  proto.temporal.api.enums.v1.WorkflowExecutionStatus;
/** How long the server may take to delete a run, in milliseconds. */
const DELETION_MS = 120_000;
const POLL_MS = 20;

export interface Execution {
  workflowId: string;
  runId: string;
  type: string;
  running: boolean;
  /** Whether it has completed: nobody ended it from outside, and it did not fail. */
  completed: boolean;
  /** By the server's clock, in milliseconds since 1970. */
  startedAt: number;
  memo: (name: string) => Promise<unknown>;
}

/** The execution of an id (its latest run, or the one named), or `null`. */
export async function findExecution(
  client: Client,
  workflowId: string,
  runId?: string,
): Promise<Execution | null> {
  const found = await orNull(
    client.workflowService.describeWorkflowExecution({
      namespace: client.options.namespace,
      execution: { workflowId, ...defined({ runId }) },
    }),
  );
  const info = found?.workflowExecutionInfo;
  if (info === null || info === undefined) return null;
  return {
    workflowId,
    runId: info.execution?.runId ?? '',
    type: info.type?.name ?? '',
    running: info.status === RUNNING,
    completed: info.status === COMPLETED,
    startedAt: tsToMs(info.startTime),
    memo: async (name) => {
      const payload = info.memo?.fields?.[name];
      return payload ? firstValue(client.options, workflowId, { payloads: [payload] }) : undefined;
    },
  };
}

/** A run and the runs that it continued, oldest first, as far as the server has them. */
export async function runsUpTo(client: Client, workflowId: string, runId: string): Promise<string[]> {
  const runs: string[] = [];
  for (let run: string | null = runId; run !== null; ) {
    const start: HistoryEvent | null | undefined = await orNull(
      readStart(client, { workflowId, runId: run }),
    );
    if (start === null) break;
    runs.unshift(run);
    run = previousRun(start);
  }
  return runs;
}

/** Tells the server to delete a run, and so to end an open run. It is gone soon after. A missing run is a no-op. */
export async function deleteRun(client: Client, workflowId: string, runId: string): Promise<void> {
  const { namespace } = client.options;
  const workflowExecution = { workflowId, runId };
  await orNull(client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution }));
}

/** Waits until a deleted run is gone. @throws PerdureError `SERVER_UNAVAILABLE` */
export async function untilGone(client: Client, workflowId: string, runId: string): Promise<void> {
  const deadline = performance.now() + DELETION_MS;
  while ((await findExecution(client, workflowId, runId)) !== null) {
    if (performance.now() > deadline) {
      throw new PerdureError(
        'SERVER_UNAVAILABLE',
        `The server accepted the deletion of ${workflowId}, but did not finish it within ${DELETION_MS / 1_000} s. Delete it again.`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Runs a read of a thread's history. Gives errors of the server a code. Any other error means a corrupt history. */
export async function reading<T>(threadId: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const known = readError(threadId, error);
    if (isPerdureError(known)) throw known;
    if (typeof (error as { code?: unknown } | null)?.code === 'number') throw error;
    throw new PerdureError(
      'CHECKPOINT_CORRUPTION',
      `The history of thread ${threadId} cannot be read: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/** Whether an event of a run is a completed workflow task, as every checkpoint is. */
export async function isCompletedTask(
  client: Client,
  execution: { workflowId: string; runId: string },
  eventId: number,
): Promise<boolean> {
  try {
    for await (const page of readPages(client, execution)) {
      const found = page.find((event) => Number(event.eventId) === eventId);
      if (found !== undefined) return Boolean(found.workflowTaskCompletedEventAttributes);
    }
    return false;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** The last completed workflow task of a run, which is its latest checkpoint. `null` when there is none. */
export async function lastCompletedTask(
  client: Client,
  execution: { workflowId: string; runId: string },
): Promise<number | null> {
  let last: number | null = null;
  for await (const page of readPages(client, execution)) {
    const task = page.findLast((event) => event.workflowTaskCompletedEventAttributes);
    if (task !== undefined) last = Number(task.eventId);
  }
  return last;
}
