/** Checkpoints: reading them from a session's history, storing them, and LangGraph on ours and on its own savers. */
import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation } from '@temporalio/client';
import { TemporalSaver } from '../../src/index.ts';
import { readEvents } from '../../src/temporal/index.ts';
import type { Context, Measure } from '../support/context.ts';
import type { Line } from '../support/report.ts';
import { QUEUE, type Scene } from '../support/scene.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';

/** Calls of one sample. */
const CALLS = 20;
const PUTS = 30;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

async function repeat(times: number, work: (i: number) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) await work(i);
}

/** An open session of 200 turns, read by a warm saver and by a new saver. */
async function reading(context: Context, scene: Scene): Promise<Line[]> {
  const turns = context.quick ? 40 : 200;
  const { client } = scene;
  const session = await scene.holdOurs(turns);
  const bare = client.workflow.getHandle(await scene.holdFloor(turns));
  const saver = new TemporalSaver(client);
  const fetch = async (): Promise<void> => {
    for await (const event of readEvents(client, { workflowId: session.id })) void event;
  };
  const rounds = context.quick ? 3 : 9;
  const running = {
    get: () => timed(() => repeat(CALLS, () => saver.get(session.id))),
    query: () => timed(() => repeat(CALLS, () => bare.query('state'))),
  };
  const bytes = JSON.stringify(await saver.get(session.id)).length;
  const cold = {
    get: () => timed(() => new TemporalSaver(client).get(session.id)),
    asked: () => timed(() => bare.query('much', bytes)),
    list: () => timed(() => new TemporalSaver(client).list(session.id, { limit: 10 })),
    fetch: () => timed(fetch),
  };
  await interleave(1, running);
  await interleave(1, cold);
  const warm = await interleave(rounds, running);
  const reads = await interleave(rounds, cold);
  await bare.signal('release');
  const against = (name: 'get' | 'list', what: string): Line => ({
    measure: 'saver',
    what,
    value: medianRatio(reads[name], reads.fetch),
    unit: 'x',
    target: { atMost: 1.5 },
    of: { ms: median(reads[name]), fetchMs: median(reads.fetch) },
    samples: { ms: reads[name], fetchMs: reads.fetch },
  });
  return [
    {
      measure: 'saver',
      what: `\`get\` of the latest of an open session of ${turns} turns, against a bare query of the floor`,
      value: medianRatio(warm.get, warm.query),
      unit: 'x',
      target: { atMost: 3 },
      of: { ms: median(warm.get) / CALLS, queryMs: median(warm.query) / CALLS },
      samples: { ms: warm.get, queryMs: warm.query },
      note: `${CALLS} calls a sample`,
    },
    {
      measure: 'saver',
      what: '`get` of the latest by a saver that has not read it before, against a bare query that answers as much',
      value: medianRatio(reads.get, reads.asked),
      unit: 'x',
      target: { atMost: 3 },
      of: { ms: median(reads.get), queryMs: median(reads.asked) },
      samples: { ms: reads.get, queryMs: reads.asked },
      note: `${Math.round(bytes / 1_000)} KB`,
    },
    against(
      'get',
      '`get` of the latest by a saver that has not read it before, against fetching that history',
    ),
    against('list', '`list` of 10 without a worker, against fetching that history'),
  ];
}

/** Compares single puts with the floor's update-with-start, and thirty puts at once with thirty in a row. */
async function writing(context: Context, { client }: Scene): Promise<Line[]> {
  const saver = new TemporalSaver(client, { taskQueue: QUEUE.ours });
  const [ours, burst, floor] = [randomUUID(), randomUUID(), `store-${randomUUID()}`];
  const state = (n: number): { n: number; text: string } => ({ n, text: 'x'.repeat(500) });
  const update = (value: unknown): Promise<number> =>
    client.workflow.executeUpdateWithStart<() => Promise<void>, number, [unknown]>('put', {
      args: [value],
      startWorkflowOperation: new WithStartWorkflowOperation('store', {
        workflowId: floor,
        taskQueue: QUEUE.floor,
        args: [],
        workflowIdConflictPolicy: 'USE_EXISTING',
      }),
    });
  const arms = {
    put: () => timed(() => repeat(PUTS, (n) => saver.put(ours, state(n)))),
    update: () => timed(() => repeat(PUTS, (n) => update(state(n)))),
    atOnce: () =>
      timed(() => Promise.all(Array.from({ length: PUTS }, (_, n) => saver.put(burst, state(n))))),
  };
  await interleave(1, arms);
  const samples = await interleave(context.quick ? 3 : 9, arms);
  await update('end');
  return [
    {
      measure: 'saver',
      what: '`put` on a foreign thread, against a bare update-with-start',
      value: medianRatio(samples.put, samples.update),
      unit: 'x',
      target: { atMost: 1.5 },
      of: { ms: median(samples.put) / PUTS, updateMs: median(samples.update) / PUTS },
      samples: { ms: samples.put, updateMs: samples.update },
      note: `${PUTS} puts a sample, one after the other`,
    },
    {
      measure: 'saver',
      what: `${PUTS} puts at once on one thread, against ${PUTS} in a row`,
      value: medianRatio(samples.atOnce, samples.put),
      unit: 'x',
      target: { atMost: 1 },
      of: { atOnceMs: median(samples.atOnce), inARowMs: median(samples.put) },
      samples: { atOnceMs: samples.atOnce, inARowMs: samples.put },
    },
  ];
}

/** Runs on the context's server, with the workers of its scene. */
export const saver: Measure = async (context) => {
  const scene = await context.scene();
  return [...(await reading(context, scene)), ...(await writing(context, scene))];
};
