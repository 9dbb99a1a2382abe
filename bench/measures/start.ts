/** A worker from its start to polling, against a process that only loads Temporal's worker module. */
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Context, Measure } from '../support/context.ts';
import { startMeasured } from '../support/processes.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';
import { until } from '../support/until.ts';

/** The enum value for workflow task queues. The client does not export the enum. */
const WORKFLOW_QUEUE = 1;

async function bareImport(): Promise<number> {
  const started = performance.now();
  const measured = startMeasured('bare-import', []);
  const { at } = await measured.said('ready');
  await measured.kill();
  return at - started;
}

/** Milliseconds until the server has seen the worker poll, which is what ready means to a session. */
async function workerStart(context: Context, running: number[]): Promise<number> {
  const { address } = await context.server();
  const { client } = await context.scene();
  const taskQueue = `start-${randomUUID()}`;
  const dist = pathToFileURL(resolve('dist/index.js')).href;
  const journal = await context.temporaryDir();
  const started = performance.now();
  const measured = startMeasured('start-worker', [dist, address, taskQueue, journal]);
  // Ask nothing before that: on a small machine, the requests would be measured.
  running.push((await measured.said('running')).at - started);
  await until(async () => {
    const { pollers } = await client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: WORKFLOW_QUEUE,
    });
    return (pollers?.length ?? 0) > 0;
  });
  const polling = performance.now() - started;
  await measured.kill();
  return polling;
}

/** Uses the built package, with its prebuilt workflow bundle. */
export const start: Measure = async (context) => {
  const { status } = spawnSync('npm', ['run', 'build', '--silent'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error('npm run build failed');
  const running: number[] = [];
  const arms = { bare: bareImport, worker: () => workerStart(context, running) };
  await interleave(1, arms);
  running.length = 0;
  const samples = await interleave(context.quick ? 3 : 11, arms);
  return [
    {
      measure: 'start',
      what: 'worker from start to its first poll, against a bare import of the worker module',
      value: medianRatio(samples.worker, samples.bare),
      unit: 'x',
      target: { atMost: 2.5 },
      of: { ms: median(samples.worker), bareMs: median(samples.bare), runCalledMs: median(running) },
      samples: { ms: samples.worker, bareMs: samples.bare, runCalledMs: running },
    },
  ];
};
