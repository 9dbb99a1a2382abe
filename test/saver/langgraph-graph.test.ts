/** Real graphs on the saver: interrupts, branches, a sub-graph, edits of the past, and a process that dies between steps. */
import { Annotation, Command, END, interrupt, isInterrupted, START, StateGraph } from '@langchain/langgraph';
import { type BaseCheckpointSaver, MemorySaver } from '@langchain/langgraph-checkpoint';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createWorker, TemporalSaver } from '../../src/index.ts';
import { LangGraphSaver } from '../../src/saver/langgraph/index.ts';
import { startProcess } from '../support/ready-process.ts';

/** A saver of a user who has just started: nothing is remembered of another's. */
async function openSaver(taskQueue: string): Promise<LangGraphSaver> {
  const { address, namespace } = inject('temporal');
  const connection = await Connection.connect({ address });
  onTestFinished(() => connection.close());
  return new LangGraphSaver(new TemporalSaver(new Client({ connection, namespace }), { taskQueue }), {
    prefix: taskQueue,
  });
}

async function openWorker(taskQueue: string): Promise<void> {
  const { address, namespace } = inject('temporal');
  const native = await NativeConnection.connect({ address });
  const worker = await createWorker({ agents: [], connection: native, namespace, taskQueue });
  const run = worker.run();
  onTestFinished(async () => {
    worker.shutdown();
    await run;
    await native.close();
  });
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const Log = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
});

test('an interrupt waits over savers; the finished branch beside it is not run again', async () => {
  const taskQueue = `langgraph-interrupt-${process.pid}`;
  await openWorker(taskQueue);
  const ran: string[] = [];
  const build = (checkpointer: LangGraphSaver) =>
    new StateGraph(Log)
      .addNode('ask', () => {
        const answer: string = interrupt('may I?');
        return { log: [`answered ${answer}`] };
      })
      .addNode('beside', () => {
        ran.push('beside');
        return { log: ['beside'] };
      })
      .addNode('after', () => ({ log: ['after'] }))
      .addEdge(START, 'ask')
      .addEdge(START, 'beside')
      .addEdge(['ask', 'beside'], 'after')
      .addEdge('after', END)
      .compile({ checkpointer });
  const config = { configurable: { thread_id: 'a thread / with 🦜' } };

  const first = await build(await openSaver(taskQueue)).invoke({ log: ['start'] }, config);
  expect(isInterrupted(first)).toBe(true);
  const second = await build(await openSaver(taskQueue)).invoke(new Command({ resume: 'yes' }), config);

  expect(second.log).toEqual(['start', 'answered yes', 'beside', 'after']);
  expect(ran).toEqual(['beside']);
});

test('a sub-graph, an edit of the state, and a run from a checkpoint of the past', async () => {
  const taskQueue = `langgraph-travel-${process.pid}`;
  await openWorker(taskQueue);
  const inner = new StateGraph(Log)
    .addNode('inside', () => {
      const word: string = interrupt('which word?');
      return { log: [`inside ${word}`] };
    })
    .addEdge(START, 'inside')
    .addEdge('inside', END)
    .compile();
  const build = (checkpointer: LangGraphSaver) =>
    new StateGraph(Log)
      .addNode('one', () => ({ log: ['one'] }))
      .addNode('sub', inner)
      .addNode('two', ({ log }) => ({ log: [`two after ${log.length}`] }))
      .addEdge(START, 'one')
      .addEdge('one', 'sub')
      .addEdge('sub', 'two')
      .addEdge('two', END)
      .compile({ checkpointer });
  const config = { configurable: { thread_id: 'travel' } };

  await build(await openSaver(taskQueue)).invoke({ log: [] }, config);
  const graph = build(await openSaver(taskQueue));
  const done = await graph.invoke(new Command({ resume: 'up' }), config);
  expect(done.log).toEqual(['one', 'one', 'inside up', 'two after 3']);

  const history = await all(graph.getStateHistory(config));
  const beforeTwo = history.find(({ next }) => next.includes('two'));
  expect(beforeTwo?.values).toMatchObject({ log: ['one', 'one', 'inside up'] });
  const edited = await graph.updateState(beforeTwo?.config ?? config, { log: ['edited'] }, 'sub');
  const again = await graph.invoke(null, edited);
  expect(again.log).toEqual(['one', 'one', 'inside up', 'edited', 'two after 4']);
  // The past is whole: what came of it before is still there.
  const past = await all(graph.getStateHistory(config));
  expect(past.map(({ values }) => (values as { log: string[] }).log.at(-1))).toEqual(
    expect.arrayContaining(['two after 3', 'two after 4']),
  );
  const saver = await openSaver(taskQueue);
  const everywhere = await all(saver.list({}));
  expect(new Set(everywhere.map(({ config: found }) => found.configurable?.['thread_id'] as string))).toEqual(
    new Set(['travel']),
  );
});

test('a process that dies between two steps: another goes on with the next, and the first is not run again', async () => {
  const taskQueue = `langgraph-killed-${process.pid}`;
  await openWorker(taskQueue);
  const { address, namespace } = inject('temporal');
  const args = [address, namespace, taskQueue];
  const first = await startProcess('test/saver/support/counting-graph.ts', [...args, 'hang']);
  await first.kill();
  const second = await startProcess('test/saver/support/counting-graph.ts', [...args, 'go-on']);
  expect(second.ready).toMatchObject({ log: ['step 1 by hang', 'step 2 by go-on', 'step 3 by go-on'] });
  await second.terminate();
});

test('a graph’s context reaches its nodes after an interrupt, and tuples hold of it what LangGraph’s own saver keeps', async () => {
  const taskQueue = `langgraph-context-${process.pid}`;
  await openWorker(taskQueue);
  const build = (checkpointer: BaseCheckpointSaver) =>
    new StateGraph(Log, Annotation.Root({ tenant: Annotation<string>() }))
      .addNode('ask', () => ({ log: [interrupt<string, string>('may I?')] }))
      .addNode('greet', (_, { context }) => ({ log: [`hello ${context?.tenant}`] }))
      .addEdge(START, 'ask')
      .addEdge('ask', 'greet')
      .addEdge('greet', END)
      .compile({ checkpointer });
  const config = {
    configurable: { thread_id: 'of a tenant', user_id: 'u-7' },
    metadata: { locale: 'de' },
    context: { tenant: 'lamps' },
  };
  /** What the tuples say of the run, without ids and times. */
  const told = async (saver: BaseCheckpointSaver, reader: BaseCheckpointSaver): Promise<unknown[]> => {
    await build(saver).invoke({ log: [] }, config);
    const done = await build(reader).invoke(new Command({ resume: 'yes' }), config);
    expect(done.log).toEqual(['yes', 'hello lamps']);
    const tuples = await all(reader.list(config));
    return tuples.map(({ metadata, pendingWrites = [] }) => ({
      metadata,
      writes: pendingWrites.map(([, channel]) => channel).sort(),
    }));
  };
  const own = new MemorySaver();
  const expected = await told(own, own);
  expect(expected.length).toBeGreaterThanOrEqual(4);
  expect(await told(await openSaver(taskQueue), await openSaver(taskQueue))).toEqual(expected);
}, 60_000);
