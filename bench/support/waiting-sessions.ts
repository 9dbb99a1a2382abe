/** Sessions that wait for a person, on a worker in a process of its own. */
import { randomUUID } from 'node:crypto';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import type { Context } from './context.ts';
import { jobText } from './job.ts';
import { type Measured, startMeasured } from './processes.ts';
import { until } from './until.ts';

/** How many sessions are started at a time. */
export const AT_ONCE = 25;

/** The number of events in a history once the model has answered and the workflow has taken the answer. */
const EVENTS = { ours: 14, floor: 10 } as const;

function isAtRest({ historyLength, raw }: WorkflowExecutionDescription, events: number): boolean {
  const pending = (raw.pendingActivities?.length ?? 0) > 0 || Boolean(raw.pendingWorkflowTask);
  return historyLength >= events && !pending;
}

export interface Waiting {
  worker: Measured;
  /** Starts sessions. Resolves with their ids when all wait. */
  start: (count: number) => Promise<string[]>;
  /** Bytes of the worker's memory, and how many workflows it has in its cache. */
  memory: () => Promise<{ rss: number; cached: number }>;
}

/** `bundle` is the file of the floor's workflows. Our worker has its own bundle. */
export async function openWaiting(
  context: Context,
  side: keyof typeof EVENTS,
  bundle: string = '',
): Promise<Waiting> {
  const { address } = await context.server();
  const { client, sessions } = await context.scene();
  const taskQueue = `waiting-${randomUUID()}`;
  const journal = await context.temporaryDir();
  const worker = startMeasured('memory-worker', [side, address, taskQueue, journal, bundle], ['--expose-gc']);
  await worker.said('ready');
  const startOne = async (): Promise<string> => {
    const id = randomUUID();
    const text = jobText({ id, turns: 1, tool: 'mutate' });
    if (side === 'ours') {
      await sessions.start('bench', { id, message: text, taskQueue });
    } else {
      await client.workflow.start('floor', { workflowId: id, taskQueue, args: [{ text, hold: true }] });
    }
    await until(async () => isAtRest(await client.workflow.getHandle(id).describe(), EVENTS[side]), {
      everyMs: 100,
    });
    return id;
  };
  let questions = 0;
  return {
    worker,
    start: async (count) => {
      const ids: string[] = [];
      while (ids.length < count) {
        const some = Math.min(AT_ONCE, count - ids.length);
        ids.push(...(await Promise.all(Array.from({ length: some }, startOne))));
      }
      return ids;
    },
    memory: async () => {
      const question = ++questions;
      worker.child.send(question);
      const { rss = 0, cached = 0 } = await worker.said('memory', ({ turn }) => turn === question);
      return { rss, cached };
    },
  };
}
