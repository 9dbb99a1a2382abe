/** A worker whose agent asks for approval, and the HTTP API with the console, on one server. */
import { Client, Connection } from '@temporalio/client';
import * as z from 'zod';
import { createHttpApi, serveHttp } from '../../src/http/index.ts';
import { createWorker, defineAgent, defineTool, Sessions, TemporalSaver } from '../../src/index.ts';
import { instantModel } from '../support/instant-model.ts';
import { toolText } from '../support/job.ts';
import { say } from '../support/processes.ts';
import { quietRuntime } from '../support/quiet.ts';

const [address = '', taskQueue = '', journal = '', token = ''] = process.argv.slice(2);
quietRuntime();
const agent = defineAgent({
  name: 'bench',
  model: instantModel(),
  instructions: 'You are measured.',
  tools: {
    mutate: defineTool({
      description: 'Changes the world',
      inputSchema: z.object({ ref: z.string() }),
      needsApproval: true,
      execute: ({ ref }) => toolText(ref),
    }),
  },
});
const worker = await createWorker({ agents: [agent], address, taskQueue, journal });
const running = worker.run();
const client = new Client({ connection: await Connection.connect({ address }) });
const api = createHttpApi({
  client,
  sessions: new Sessions(client, { taskQueue }),
  saver: new TemporalSaver(client, { taskQueue }),
  token,
  console: true,
});
const { url } = await serveHttp(api, { host: '127.0.0.1', port: 0 });
say({ event: 'ready', port: Number(new URL(url).port) });
await running;
