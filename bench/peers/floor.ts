/** The floor: a bare workflow with two remote activities a turn, on the same server as ours. */
import { Context } from '@temporalio/activity';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { TASK_TIMEOUT } from '../../src/contract/limits.ts';
import type { FloorActivities } from '../floor/activities.ts';
import { bundleFloor } from '../floor/bundle.ts';
import { jobText } from '../support/job.ts';
import { quietRuntime } from '../support/quiet.ts';
import { serve, turnsOf, type Work } from './serve.ts';

function activities(work: Work): FloorActivities {
  return {
    model: async ({ turn }) => {
      const { text, ref } = work.model(Context.current().info.workflowExecution?.workflowId ?? '', turn);
      const calls = ref === undefined ? [] : [{ id: `provider_${turn}`, name: 'read', args: { ref } }];
      return { text, calls, usage: { inputTokens: 500 * turn, outputTokens: 280 } };
    },
    tool: ({ args }) => work.tool(args.ref),
  };
}

await serve(async (work, { temporal = '', taskQueue = '' }) => {
  quietRuntime();
  const client = new Client({ connection: await Connection.connect({ address: temporal }) });
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address: temporal }),
    taskQueue,
    // As `createWorker` sets them. Polls, build id and connection are the SDK's defaults: better choices are part of
    // our library.
    stickyQueueScheduleToStartTimeout: '1s',
    maxHeartbeatThrottleInterval: 250,
    defaultHeartbeatThrottleInterval: 250,
    workflowBundle: await bundleFloor(),
    activities: activities(work),
  });
  worker.run().catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
  return {
    run: (id) =>
      client.workflow.execute('floor', {
        workflowId: id,
        taskQueue,
        args: [{ text: jobText({ id, turns: turnsOf(id), tool: 'read' }) }],
        workflowTaskTimeout: TASK_TIMEOUT,
      }),
    resume: (id) => client.workflow.getHandle(id).result(),
  };
});
