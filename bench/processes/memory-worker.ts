/** A worker, `ours` or the `floor`, that reports its memory on request. */
import { NativeConnection, Worker } from '@temporalio/worker';
import * as z from 'zod';
import { createWorker, defineAgent, defineTool } from '../../src/index.ts';
import { floorActivities } from '../floor/activities.ts';
import { instantModel } from '../support/instant-model.ts';
import { readJob } from '../support/job.ts';
import { say } from '../support/processes.ts';
import { quietRuntime } from '../support/quiet.ts';

const [side = '', address = '', taskQueue = '', journal = '', bundle = ''] = process.argv.slice(2);
quietRuntime();
const mutate = defineTool({
  inputSchema: z.object({ ref: z.string() }),
  needsApproval: true,
  execute: ({ ref: _ref }, { sessionId }) => {
    say({ event: 'tool', of: sessionId });
    return '';
  },
});
const worker =
  side === 'ours'
    ? await createWorker({
        agents: [
          defineAgent({
            name: 'bench',
            model: instantModel(),
            instructions: 'You are measured.',
            tools: { mutate },
          }),
        ],
        address,
        taskQueue,
        journal,
      })
    : await Worker.create({
        connection: await NativeConnection.connect({ address }),
        taskQueue,
        // Built elsewhere, like ours: a bundler in this process would be measured.
        workflowBundle: { codePath: bundle },
        activities: floorActivities((id) => readJob(`bench ${id} 0 read`)),
      });
process.on('message', (question) => {
  // Collect garbage in this thread. The workflows' thread collects when it likes, as in production.
  globalThis.gc?.();
  setTimeout(() => {
    const { numCachedWorkflows: cached } = worker.getStatus();
    say({ event: 'memory', turn: Number(question), rss: process.memoryUsage().rss, cached });
  }, 500);
});
const running = worker.run();
say({ event: 'ready' });
await running;
