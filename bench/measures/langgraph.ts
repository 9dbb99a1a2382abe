/** One LangGraph graph on our saver, and on LangGraph's own for SQLite and PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import type { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';
import { threadWorkflowId } from '../../src/contract/thread.ts';
import { TemporalSaver } from '../../src/index.ts';
import { LangGraphSaver } from '../../src/saver/langgraph/index.ts';
import { install } from '../peers/install.ts';
import { findPrograms, startPostgres } from '../peers/postgres.ts';
import { bytesInUse, historyBytes, sqliteBytes } from '../peers/stack.ts';
import type { Context, Measure } from '../support/context.ts';
import { replyText } from '../support/job.ts';
import type { Line } from '../support/report.ts';
import { QUEUE } from '../support/scene.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';

/** Steps of one run of the graph, each of which adds a kilobyte to the state. */
const STEPS = 20;

/** A saver, and its store. */
interface Arm {
  checkpointer: BaseCheckpointSaver;
  /** Bytes that the store holds. */
  stored: () => Promise<number>;
  /** Bytes of a thread as its server counts them, if it does. */
  counted?: (thread: string) => Promise<number>;
}

/** The part of LangGraph's own savers that is used here. Their packages are installed only for a measurement. */
interface Own<SAVER> {
  fromConnString(place: string): BaseCheckpointSaver & SAVER;
}
type Sqlite = Own<{ db: { pragma(name: string, options: { simple: true }): unknown; close(): void } }>;
type Postgres = Own<{ setup(): Promise<void>; end(): Promise<void> }>;

async function runGraph(checkpointer: BaseCheckpointSaver, thread: string): Promise<void> {
  const Log = Annotation.Root({
    log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
  });
  const graph = new StateGraph(Log)
    .addNode('step', ({ log }) => ({ log: [replyText(log.length)] }))
    .addEdge(START, 'step')
    .addConditionalEdges('step', ({ log }) => (log.length < STEPS ? 'step' : END))
    .compile({ checkpointer });
  const { log } = await graph.invoke(
    { log: [] },
    {
      configurable: { thread_id: thread },
      recursionLimit: STEPS + 5,
      // Every step is stored before the next one begins, as in the comparison.
      durability: 'sync',
    },
  );
  if (log.length !== STEPS) throw new Error(`the graph ended after ${log.length} steps`);
}

async function ours(context: Context): Promise<Arm> {
  const { client } = await context.scene();
  const database = join(await context.serverDir(), 'temporal.db');
  return {
    checkpointer: new LangGraphSaver(new TemporalSaver(client, { taskQueue: QUEUE.ours })),
    stored: () => sqliteBytes(database),
    counted: (thread) => historyBytes(client, threadWorkflowId(`langgraph/${thread}`)),
  };
}

/** LangGraph's own savers whose database is on this machine. */
async function theirs(context: Context): Promise<Record<string, Arm>> {
  const { folder, versions } = await install('langgraph');
  Object.assign(context.versions, versions);
  const from = createRequire(pathToFileURL(join(folder, 'package.json')));
  const load = async <T>(name: string): Promise<T> =>
    (await import(pathToFileURL(from.resolve(name)).href)) as T;
  const arms: Record<string, Arm> = {};
  const { SqliteSaver } = await load<{ SqliteSaver: Sqlite }>('@langchain/langgraph-checkpoint-sqlite');
  const sqlite = SqliteSaver.fromConnString(join(await context.temporaryDir(), 'langgraph.sqlite'));
  context.onClose(async () => void sqlite.db.close());
  arms['sqlite'] = {
    checkpointer: sqlite,
    stored: async () => bytesInUse((name) => Number(sqlite.db.pragma(name, { simple: true }))),
  };
  if (findPrograms() === undefined) return arms;
  const postgres = await startPostgres(await context.temporaryDir());
  context.onClose(() => postgres.stop());
  const { PostgresSaver } = await load<{ PostgresSaver: Postgres }>(
    '@langchain/langgraph-checkpoint-postgres',
  );
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

/** Runs the same graph repeatedly, each time with a new thread. */
export const langgraph: Measure = async (context) => {
  const arms: Record<string, Arm> = { ours: await ours(context), ...(await theirs(context)) };
  const rounds = context.quick ? 3 : 9;
  const bytes = new Map<string, { stored: number; counted?: number }[]>();
  const run =
    (name: string, { checkpointer, stored, counted }: Arm) =>
    async (): Promise<number> => {
      const thread = randomUUID();
      const before = await stored();
      const started = performance.now();
      await runGraph(checkpointer, thread);
      const ms = (performance.now() - started) / STEPS;
      const grown = ((await stored()) - before) / STEPS;
      const size = counted === undefined ? {} : { counted: (await counted(thread)) / STEPS };
      bytes.set(name, [...(bytes.get(name) ?? []), { stored: grown, ...size }]);
      return ms;
    };
  const measured = Object.fromEntries(Object.entries(arms).map(([name, arm]) => [name, run(name, arm)]));
  await interleave(1, measured);
  bytes.clear();
  const samples = await interleave(rounds, measured);
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, each) => sum + each, 0) / values.length;
  return Object.keys(arms).flatMap((name): Line[] => {
    const stored = bytes.get(name)?.map((each) => each.stored) ?? [];
    const counted = bytes.get(name)?.flatMap((each) => each.counted ?? []) ?? [];
    return [
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
        value: mean(stored),
        unit: 'bytes',
        ...(counted.length === 0 ? {} : { of: { history: mean(counted) } }),
        samples: { stored, ...(counted.length === 0 ? {} : { history: counted }) },
        note: 'the mean: stores grow by pages',
      },
    ];
  });
};
