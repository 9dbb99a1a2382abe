// LangGraph.js: the loop of model node and tool node over the prebuilt messages state; the variant is its saver.
import { join } from 'node:path';
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { serve, turnsOf } from '../serve.js';

async function saver({ variant, dir, postgres }) {
  if (variant === 'sqlite') {
    const { SqliteSaver } = await import('@langchain/langgraph-checkpoint-sqlite');
    return SqliteSaver.fromConnString(join(dir, 'langgraph.db'));
  }
  const { PostgresSaver } = await import('@langchain/langgraph-checkpoint-postgres');
  const found = PostgresSaver.fromConnString(postgres);
  await found.setup();
  return found;
}

await serve(async (work, settings) => {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('model', ({ messages }, { configurable }) => {
      const turn = messages.filter((message) => message.getType() === 'ai').length + 1;
      const { text, ref } = work.model(configurable.thread_id, turn);
      const calls = ref === undefined ? [] : [{ id: `provider_${turn}`, name: 'read', args: { ref } }];
      return { messages: [new AIMessage({ content: text, tool_calls: calls })] };
    })
    .addNode('tools', async ({ messages }) => {
      const results = messages.at(-1).tool_calls.map(async ({ id, name, args }) => {
        return new ToolMessage({ tool_call_id: id, name, content: await work.tool(args.ref) });
      });
      return { messages: await Promise.all(results) };
    })
    .addEdge(START, 'model')
    .addConditionalEdges('model', ({ messages }) => (messages.at(-1).tool_calls.length > 0 ? 'tools' : END))
    .addEdge('tools', 'model')
    .compile({ checkpointer: await saver(settings) });

  const invoke = async (id, input) => {
    const { messages } = await graph.invoke(input, {
      configurable: { thread_id: id },
      recursionLimit: 2 * turnsOf(id) + 10,
      // Every step is stored before the next one begins, as everywhere in this comparison.
      durability: 'sync',
    });
    if (messages.length !== 2 + 2 * turnsOf(id)) throw new Error('messages are missing');
  };
  return {
    run: (id) => invoke(id, { messages: [new HumanMessage(id)] }),
    // LangGraph does not continue by itself: the application must know which threads were open, and invoke them again.
    resume: (id) => invoke(id, null),
  };
});
