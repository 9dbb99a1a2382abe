/** Reading a session from its history, and from its worker. */
import { foldHistory } from '../../src/history/index.ts';
import { TemporalSaver } from '../../src/index.ts';
import { type HistoryEvent, readEvents } from '../../src/temporal/index.ts';
import type { Measure } from '../support/context.ts';
import type { Line } from '../support/report.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';

/** Queries of one sample. */
const QUERIES = 20;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** The long session for the fold; sessions of ten turns for the queries. */
export const fold: Measure = async (context) => {
  const scene = await context.scene();
  const { client } = scene;
  const { workflowId } = await context.longSession();
  const events: HistoryEvent[] = [];
  for await (const event of readEvents(client, { workflowId })) events.push(event);
  const rounds = context.quick ? 3 : 9;

  const cpu: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const before = process.cpuUsage();
    await foldHistory([events], client.options);
    const { user, system } = process.cpuUsage(before);
    if (round > 0) cpu.push(((user + system) / 1_000) * (10_000 / events.length));
  }

  const saver = new TemporalSaver(client);
  const reading = {
    get: () => timed(() => saver.get(workflowId)),
    fetch: () =>
      timed(async () => {
        for await (const event of readEvents(client, { workflowId })) void event;
      }),
  };
  await interleave(1, reading);
  const reads = await interleave(rounds, reading);

  const session = await scene.holdOurs(10);
  const bare = client.workflow.getHandle(await scene.holdFloor(10));
  const asking = {
    ours: () => timed(() => repeat(() => session.state())),
    bare: () => timed(() => repeat(() => bare.query('state'))),
  };
  await interleave(1, asking);
  const queries = await interleave(rounds, asking);
  await bare.signal('release');
  return [
    {
      measure: 'fold',
      what: 'folding 10,000 events that are fetched and decoded',
      value: median(cpu),
      unit: 'ms of CPU',
      target: { atMost: 100 },
      samples: { ms: cpu },
      note: `${events.length} events, scaled`,
    },
    {
      measure: 'fold',
      what: '`get` of the latest checkpoint, against fetching that history',
      value: medianRatio(reads.get, reads.fetch),
      unit: 'x',
      target: { atMost: 1.5 },
      of: { ms: median(reads.get), fetchMs: median(reads.fetch) },
      samples: { ms: reads.get, fetchMs: reads.fetch },
    },
    {
      measure: 'fold',
      what: 'query of an open session, against a bare query of the floor',
      value: medianRatio(queries.ours, queries.bare),
      unit: 'x',
      target: { atMost: 3 },
      of: { ms: median(queries.ours) / QUERIES, bareMs: median(queries.bare) / QUERIES },
      samples: { ms: queries.ours, bareMs: queries.bare },
      note: `${QUERIES} queries a sample`,
    },
  ] satisfies Line[];
};

async function repeat(query: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < QUERIES; i++) await query();
}
