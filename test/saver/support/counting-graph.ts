/** A graph of three steps in a process of its own: as `hang` it stays in the second, as `go-on` it ends the run. */
import { setInterval } from 'node:timers';
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import { Client, Connection } from '@temporalio/client';
import { TemporalSaver } from '../../../src/index.ts';
import { LangGraphSaver } from '../../../src/saver/langgraph/index.ts';

const [address = '', namespace = '', taskQueue = '', mode = ''] = process.argv.slice(2);
const connection = await Connection.connect({ address });
const saver = new TemporalSaver(new Client({ connection, namespace }), { taskQueue });
const checkpointer = new LangGraphSaver(saver, { prefix: taskQueue });
const config = { configurable: { thread_id: 'counting' } };

const Log = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
});

function ready(news: object): void {
  process.stdout.write(`${JSON.stringify({ pid: process.pid, ...news })}\n`);
  // Alive until it is ended.
  setInterval(() => {}, 60_000);
}

const step = (n: number) => async (): Promise<{ log: string[] }> => {
  if (mode === 'hang' && n === 2) {
    // LangGraph goes on to the next step while the last one is being stored; the death comes when it is.
    while ((await checkpointer.getTuple(config))?.metadata?.step !== 1);
    ready({});
    await new Promise(() => {});
  }
  return { log: [`step ${n} by ${mode}`] };
};

const graph = new StateGraph(Log)
  .addNode('one', step(1))
  .addNode('two', step(2))
  .addNode('three', step(3))
  .addEdge(START, 'one')
  .addEdge('one', 'two')
  .addEdge('two', 'three')
  .addEdge('three', END)
  .compile({ checkpointer });

const { log } = await graph.invoke(mode === 'hang' ? { log: [] } : null, config);
ready({ log });
