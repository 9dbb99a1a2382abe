/** What a worker's memory is with many sessions that wait for a person. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { bundleFloor } from '../floor/bundle.ts';
import type { Context, Measure } from '../support/context.ts';
import { jobText } from '../support/job.ts';
import { startMeasured } from '../support/processes.ts';
import type { Line } from '../support/report.ts';
import { until } from '../support/until.ts';

const MB = 2 ** 20;
/** Sessions that are started at a time. */
const AT_ONCE = 25;

/** Events of a history once its model has answered and the workflow has taken it up. */
const EVENTS = { ours: 14, floor: 10 } as const;

function isAtRest({ historyLength, raw }: WorkflowExecutionDescription, events: number): boolean {
  const pending = (raw.pendingActivities?.length ?? 0) > 0 || Boolean(raw.pendingWorkflowTask);
  return historyLength >= events && !pending;
}

interface Waiting {
  /** Bytes before the first and with the last. */
  before: number;
  after: number;
  cached: number;
}

/** `bundle` is the file of the floor's workflows; ours keeps its own. */
async function waiting(
  context: Context,
  side: 'ours' | 'floor',
  count: number,
  bundle: string,
): Promise<Waiting> {
  const { address } = await context.server();
  const { client, sessions } = await context.scene();
  const taskQueue = `memory-${randomUUID()}`;
  const journal = await context.temporaryDir();
  const worker = startMeasured('memory-worker', [side, address, taskQueue, journal, bundle], ['--expose-gc']);
  const memory = async (question: number): Promise<{ rss: number; cached: number }> => {
    worker.child.send(question);
    const { rss = 0, cached = 0 } = await worker.said('memory', ({ turn }) => turn === question);
    return { rss, cached };
  };
  try {
    await worker.said('ready');
    const startOne = async (): Promise<void> => {
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
    };
    // The first sessions load what is loaded once.
    for (let i = 0; i < AT_ONCE; i++) await startOne();
    const { rss: before } = await memory(1);
    for (let started = 0; started < count; started += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, startOne));
    }
    const { rss: after, cached } = await memory(2);
    return { before, after, cached };
  } finally {
    await worker.kill();
  }
}

/** One process of its own for each side. The floor's workflows wait for a signal after one model call. */
export const memory: Measure = async (context) => {
  const count = context.quick ? 100 : 1_000;
  const bundle = join(await context.temporaryDir(), 'floor.cjs');
  await writeFile(bundle, (await bundleFloor()).code);
  const ours = await waiting(context, 'ours', count, bundle);
  const floor = await waiting(context, 'floor', count, bundle);
  const perSession = ({ before, after }: Waiting): number => (after - before) / count / 1_024;
  return [
    {
      measure: 'memory',
      what: `worker with ${count} sessions that wait for a person`,
      value: ours.after / MB,
      unit: 'MB resident',
      of: { floorMb: floor.after / MB, cached: ours.cached, floorCached: floor.cached },
    },
    {
      measure: 'memory',
      what: 'one waiting session',
      value: perSession(ours),
      unit: 'KB',
      of: { floorKb: perSession(floor) },
    },
  ] satisfies Line[];
};
