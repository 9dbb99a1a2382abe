// @temporalio/ai-sdk: the AI SDK's loop as a workflow, its model calls as activities, on the same server as ours.
import { fileURLToPath } from 'node:url';
import { AiSdkPlugin } from '@temporalio/ai-sdk';
import { Client, Connection } from '@temporalio/client';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
} from '@temporalio/worker';
import { serve, turnsOf } from '../serve.js';

function instant(work) {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'instant',
    supportedUrls: {},
    doGenerate: async ({ prompt }) => {
      const id = prompt.find(({ role }) => role === 'user').content[0].text;
      const turn = prompt.filter(({ role }) => role === 'assistant').length + 1;
      const { text, ref } = work.model(id, turn);
      const call = {
        type: 'tool-call',
        toolCallId: `provider_${turn}`,
        toolName: 'read',
        input: JSON.stringify({ ref }),
      };
      return {
        content: [{ type: 'text', text }, ...(ref === undefined ? [] : [call])],
        finishReason:
          ref === undefined ? { unified: 'stop', raw: 'stop' } : { unified: 'tool-calls', raw: 'tool_calls' },
        usage: { inputTokens: { total: 500 * turn }, outputTokens: { total: 280 } },
        warnings: [],
      };
    },
  };
}

await serve(async (work, { temporal, taskQueue }) => {
  const filter = makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' });
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { filter } } });
  const client = new Client({ connection: await Connection.connect({ address: temporal }) });
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address: temporal }),
    taskQueue,
    // As in the floor.
    stickyQueueScheduleToStartTimeout: '1s',
    maxHeartbeatThrottleInterval: 250,
    defaultHeartbeatThrottleInterval: 250,
    workflowsPath: fileURLToPath(new URL('workflow.mjs', import.meta.url)),
    activities: { look: (ref) => work.tool(ref) },
    plugins: [
      new AiSdkPlugin({ modelProvider: { specificationVersion: 'v4', languageModel: () => instant(work) } }),
    ],
  });
  worker.run().catch((error) => {
    console.error(error);
    process.exit(1);
  });
  const all = (id, steps) => {
    if (steps !== 1 + turnsOf(id)) throw new Error('steps are missing');
  };
  return {
    run: async (id) =>
      all(
        id,
        await client.workflow.execute('session', {
          workflowId: id,
          taskQueue,
          args: [id, turnsOf(id)],
          workflowTaskTimeout: '2s',
        }),
      ),
    resume: async (id) => all(id, await client.workflow.getHandle(id).result()),
  };
});
