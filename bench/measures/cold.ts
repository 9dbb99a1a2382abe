/** Sessions on a worker that has a tenth of a core and has seen none of them. */
import { randomUUID } from 'node:crypto';
import { SIGNAL } from '../../src/contract/names.ts';
import type { StartOptions } from '../../src/index.ts';
import type { Context, Measure } from '../support/context.ts';
import { jobText } from '../support/job.ts';
import { type Measured, startMeasured } from '../support/processes.ts';
import { throttle } from '../support/throttle.ts';
import { until } from '../support/until.ts';

const SHARE = 0.1;
/** Turns of the run that is replayed: from none for a new session to the most that a run has by default. */
const TURNS = { full: [0, 10, 49], quick: [0, 5] } as const;
const WITHIN_MS = 600_000;
/** A longer time-out for workers as slow as this one. */
const LONGER = '30s';

interface Found {
  late: number;
  of: Record<string, number>;
}

/** Takes over sessions that another worker began, and starts one. */
async function takeOver(
  context: Context,
  options: Pick<StartOptions, 'workflowTaskTimeout'>,
): Promise<Found> {
  const { address } = await context.server();
  const { client, sessions } = await context.scene();
  const taskQueue = `cold-${randomUUID()}`;
  const args = [address, taskQueue, await context.temporaryDir(), '200000'];
  const ids = new Map<string, number>();
  const begin = async (turns: number): Promise<string> => {
    const id = randomUUID();
    ids.set(id, turns);
    const message = jobText({ id, turns, tool: 'mutate' });
    await sessions.start('bench', { id, message, taskQueue, ...options });
    return id;
  };
  let worker: Measured = startMeasured('long-worker', args);
  try {
    await worker.said('ready');
    for (const turns of TURNS[context.quick ? 'quick' : 'full']) {
      if (turns === 0) continue;
      const id = await begin(turns - 1);
      await until(async () => (await sessions.get(id).state()).phase === 'idle');
    }
    await worker.kill();
    worker = startMeasured('long-worker', args);
    const end = throttle(worker.child.pid ?? 0, SHARE);
    await worker.said('ready', () => true, WITHIN_MS);
    const of: Record<string, number> = {};
    /** The run that was taken over. The session may continue in another run. */
    const runs = new Map<string, string>();
    const timed = async (id: string, turns: number, go: () => Promise<string>): Promise<void> => {
      const started = performance.now();
      const run = await go();
      const { at } = await worker.said('model', (said) => said.of === id, WITHIN_MS);
      of[turns === 0 ? 'newMs' : `after${turns}Ms`] = at - started;
      runs.set(id, run);
    };
    for (const [id, turns] of ids)
      await timed(id, turns + 1, async () => {
        const { runId } = await client.workflow.getHandle(id).describe();
        await client.workflow.getHandle(id).signal(SIGNAL.send, { text: 'Go on.' });
        return runId;
      });
    const fresh = randomUUID();
    await timed(fresh, 0, async () => {
      const message = jobText({ id: fresh, turns: 0, tool: 'mutate' });
      await sessions.start('bench', { id: fresh, message, taskQueue, ...options });
      return (await client.workflow.getHandle(fresh).describe()).runId;
    });
    end();
    let late = 0;
    for (const [id, run] of runs) {
      await until(async () => (await sessions.get(id).state()).phase === 'idle');
      const { events } = await client.workflow.getHandle(id, run).fetchHistory();
      // Further attempts leave no events of their own.
      for (const { workflowTaskScheduledEventAttributes: task } of events ?? [])
        late += (task?.attempt ?? 1) - 1;
    }
    return { late, of };
  } finally {
    await worker.kill();
  }
}

export const cold: Measure = async (context) => {
  const usual = await takeOver(context, {});
  const longer = await takeOver(context, { workflowTaskTimeout: LONGER });
  const line = { measure: 'cold', unit: '', target: { atMost: 0 } };
  const note = 'milliseconds until the model is asked: of a new session, and of one that the worker replays';
  return [
    {
      ...line,
      what: 'workflow tasks that ran out of time on a worker with a tenth of a core',
      value: usual.late,
      of: usual.of,
      note,
    },
    {
      ...line,
      what: `the same with workflowTaskTimeout: '${LONGER}'`,
      value: longer.late,
      of: longer.of,
      note,
    },
  ];
};
