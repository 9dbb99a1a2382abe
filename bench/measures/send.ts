/** From `send()` to the model's request, beside a bare signal and the activity that it starts. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { NativeConnection, Worker } from '@temporalio/worker';
import { createWorker, defineAgent } from '../../src/index.ts';
import { bundleFloor } from '../floor/bundle.ts';
import type { Measure } from '../support/context.ts';
import { instantModel } from '../support/instant-model.ts';
import { jobText } from '../support/job.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';
import { until } from '../support/until.ts';

/** Rounds that are not counted, because code is cold. */
const WARM_UP = 5;
/** The pause between two messages, so that each finds both sides at rest. */
const REST_MS = 30;

export const send: Measure = async (context) => {
  const { address } = await context.server();
  const { client, sessions } = await context.scene();
  const taskQueue = `send-${randomUUID()}`;
  const floorQueue = `${taskQueue}-floor`;
  let askedAt = 0;
  const asked = (): void => {
    askedAt = performance.now();
  };
  const agent = defineAgent({ name: 'bench', model: instantModel(asked), instructions: 'You are measured.' });
  const native = await NativeConnection.connect({ address });
  const journal = await context.temporaryDir();
  const workers = [
    await createWorker({ agents: [agent], address, taskQueue, journal }),
    await Worker.create({
      connection: native,
      taskQueue: floorQueue,
      workflowBundle: await bundleFloor(),
      activities: {
        answer: async () => {
          asked();
          return 'Yes.';
        },
      },
    }),
  ];
  const running = workers.map((worker) => worker.run());
  const first = jobText({ id: randomUUID(), turns: 0, tool: 'read' });
  const session = await sessions.start('bench', { message: first, taskQueue });
  const workflowId = `heard-${randomUUID()}`;
  const bare = await client.workflow.start('heard', { workflowId, taskQueue: floorQueue });
  const asksAfter = async (say: () => Promise<unknown>): Promise<number> => {
    await delay(REST_MS);
    const before = performance.now();
    const said = say();
    await until(() => askedAt > before);
    await said;
    return askedAt - before;
  };
  const arms = {
    ours: () => asksAfter(() => session.send('Yes?')),
    floor: () => asksAfter(() => bare.signal('say', 'Yes?')),
  };
  let samples: Record<keyof typeof arms, number[]>;
  try {
    await until(() => askedAt > 0);
    await interleave(WARM_UP, arms);
    samples = await interleave(context.quick ? 5 : 30, arms);
  } finally {
    await bare.terminate();
    for (const worker of workers) worker.shutdown();
    await Promise.all(running);
    await native.close();
  }
  const { ours, floor } = samples;
  return [
    {
      measure: 'send',
      what: "from send() to the model's request, against a bare signal and its activity",
      value: medianRatio(ours, floor),
      unit: '×',
      target: { atMost: 1.3 },
      of: { oursMs: median(ours), floorMs: median(floor) },
      samples,
      note: `${ours.length} messages to each in turn, sessions at rest`,
    },
  ];
};
