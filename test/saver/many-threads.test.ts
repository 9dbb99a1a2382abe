/** Many LangGraph threads begin at once on one worker: each of them finishes. */
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createWorker, TemporalSaver } from '../../src/index.ts';
import { LangGraphSaver } from '../../src/saver/langgraph/index.ts';

const THREADS = 200;

const Log = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
});

test('200 LangGraph threads that begin at once all finish', async () => {
  const taskQueue = `many-threads-${process.pid}`;
  const { address, namespace } = inject('temporal');
  const native = await NativeConnection.connect({ address });
  const worker = await createWorker({ agents: [], connection: native, namespace, taskQueue });
  const run = worker.run();
  const connection = await Connection.connect({ address });
  onTestFinished(async () => {
    await connection.close();
    worker.shutdown();
    await run;
    await native.close();
  });
  const saver = new LangGraphSaver(new TemporalSaver(new Client({ connection, namespace }), { taskQueue }), {
    prefix: taskQueue,
  });
  const graph = new StateGraph(Log)
    .addNode('one', () => ({ log: ['one'] }))
    .addNode('two', () => ({ log: ['two'] }))
    .addEdge(START, 'one')
    .addEdge('one', 'two')
    .addEdge('two', END)
    .compile({ checkpointer: saver });
  const ended = await Promise.allSettled(
    Array.from({ length: THREADS }, async (_, i) => {
      const { log } = await graph.invoke({ log: ['start'] }, { configurable: { thread_id: `thread ${i}` } });
      return log;
    }),
  );
  const failures = ended.flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []));
  expect(failures).toEqual([]);
  for (const end of ended) {
    expect(end.status === 'fulfilled' && end.value).toEqual(['start', 'one', 'two']);
  }
}, 180_000);
