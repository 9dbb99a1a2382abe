/** One LangGraph graph on our saver, and on LangGraph's own for SQLite and PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import type { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';
import { threadWorkflowId } from '../../src/contract/thread.ts';
import { TemporalSaver } from '../../src/index.ts';
import { LangGraphSaver } from '../../src/saver/langgraph.ts';
import { install } from '../peers/install.ts';
import { findPrograms, startPostgres } from '../peers/postgres.ts';
import type { Context, Measure } from '../support/context.ts';
import { replyText } from '../support/job.ts';
import type { Line } from '../support/report.ts';
import { QUEUE } from '../support/scene.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';

/** Steps of one run of the graph, each of which adds a kilobyte to the state. */
const STEPS = 20;

/** A saver, and what it has stored of a thread or of all, in bytes. */
interface Arm {
  checkpointer: BaseCheckpointSaver;
  stored: (thread: string) => Promise<number>;
}

async function runGraph(checkpointer: BaseCheckpointSaver, thread: string): Promise<void> {
  const Log = Annotation.Root({
    log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
  });
  const graph = new StateGraph(Log)
    .addNode('step', ({ log }) => ({ log: [replyText(log.length)] }))
    .addEdge(START, 'step')
    .addConditionalEdges('step', ({ log }) => (log.length < STEPS ? 'step' : END))
    .compile({ checkpointer });
  const config = { configurable: { thread_id: thread }, recursionLimit: STEPS + 5 };
  const { log } = await graph.invoke({ log: [] }, config);
  if (log.length !== STEPS) throw new Error(`the graph ended after ${log.length} steps`);
}

async function ours(context: Context): Promise<Arm> {
  const { client } = await context.scene();
  return {
    checkpointer: new LangGraphSaver(new TemporalSaver(client, { taskQueue: QUEUE.ours })),
    stored: async (thread) => {
      const { historySize } = await client.workflow
        .getHandle(threadWorkflowId(`langgraph/${thread}`))
        .describe();
      return historySize ?? 0;
    },
  };
}

/** LangGraph's own savers, those of which this machine has the database. */
async function theirs(context: Context): Promise<Record<string, Arm>> {
  const { folder, versions } = await install('langgraph');
  Object.assign(context.versions, versions);
  const from = createRequire(pathToFileURL(join(folder, 'package.json')));
  const load = async <T>(name: string): Promise<T> =>
    (await import(pathToFileURL(from.resolve(name)).href)) as T;
  const arms: Record<string, Arm> = {};
  interface Own {
    fromConnString(place: string): BaseCheckpointSaver & { setup(): Promise<void>; end(): Promise<void> };
  }
  const file = join(await context.temporaryDir(), 'langgraph.sqlite');
  const { SqliteSaver } = await load<{ SqliteSaver: Own }>('@langchain/langgraph-checkpoint-sqlite');
  const size = (path: string): Promise<number> =>
    stat(path).then(
      (found) => found.size,
      () => 0,
    );
  arms['sqlite'] = {
    checkpointer: SqliteSaver.fromConnString(file),
    stored: async () => (await size(file)) + (await size(`${file}-wal`)),
  };
  if (findPrograms() === undefined) return arms;
  const postgres = await startPostgres(await context.temporaryDir());
  context.onClose(() => postgres.stop());
  const { PostgresSaver } = await load<{ PostgresSaver: Own }>('@langchain/langgraph-checkpoint-postgres');
  const checkpointer = PostgresSaver.fromConnString(postgres.url('postgres'));
  await checkpointer.setup();
  context.onClose(() => checkpointer.end());
  arms['postgres'] = {
    checkpointer,
    stored: async () =>
      Number(
        await postgres.ask(
          'postgres',
          "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE c.relname LIKE 'checkpoint%' AND c.relkind = 'r'",
        ),
      ),
  };
  return arms;
}

/** The same graph again and again, each time a new thread. */
export const langgraph: Measure = async (context) => {
  const arms: Record<string, Arm> = { ours: await ours(context), ...(await theirs(context)) };
  const rounds = context.quick ? 3 : 9;
  const bytes: Record<string, number[]> = Object.fromEntries(Object.keys(arms).map((name) => [name, []]));
  const run =
    (name: string, { checkpointer, stored }: Arm) =>
    async (): Promise<number> => {
      const thread = randomUUID();
      const before = name === 'ours' ? 0 : await stored(thread);
      const started = performance.now();
      await runGraph(checkpointer, thread);
      const ms = (performance.now() - started) / STEPS;
      bytes[name]?.push(((await stored(thread)) - before) / STEPS);
      return ms;
    };
  const measured = Object.fromEntries(Object.entries(arms).map(([name, arm]) => [name, run(name, arm)]));
  await interleave(1, measured);
  for (const taken of Object.values(bytes)) taken.length = 0;
  const samples = await interleave(rounds, measured);
  return Object.keys(arms).flatMap((name): Line[] => [
    {
      measure: 'langgraph',
      what: `time of a step of one graph, ${STEPS} steps a run`,
      peer: name,
      value: median(samples[name] ?? []),
      unit: 'ms',
      of: { timesOurs: medianRatio(samples[name] ?? [], samples['ours'] ?? []) },
      samples: { ms: samples[name] ?? [] },
    },
    {
      measure: 'langgraph',
      what: 'bytes that a step leaves in the store',
      peer: name,
      value: (bytes[name] ?? []).reduce((sum, each) => sum + each, 0) / rounds,
      unit: 'bytes',
      samples: { bytes: bytes[name] ?? [] },
      note: 'of files the mean: they grow by pages',
    },
  ]);
};
