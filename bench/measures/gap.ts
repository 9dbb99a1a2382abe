/** The gap that no client can close: how long a request takes from the tool's last fence to the service. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import * as z from 'zod';
import { createWorker, defineAgent, defineTool } from '../../src/index.ts';
import type { Measure } from '../support/context.ts';
import { instantModel } from '../support/instant-model.ts';
import { jobText, toolText } from '../support/job.ts';
import { startMeasured } from '../support/processes.ts';
import type { Line } from '../support/report.ts';
import { median } from '../support/stats.ts';

/** Calls that are not counted, because of cold code and the first connection. */
const WARM_UP = 10;

/** When a request arrived at the service, by the clock of `process.hrtime`. */
async function arrival(port: number, agent: Agent): Promise<bigint> {
  const asked = request({ port, agent, method: 'POST', path: '/refunds' });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return BigInt(await text(response));
}

/** One session. Its calls alternate between an open connection and a new connection. */
export const gap: Measure = async (context) => {
  const { address } = await context.server();
  const { sessions } = await context.scene();
  const taskQueue = `gap-${randomUUID()}`;
  const service = startMeasured('gap-service', []);
  const { port = 0 } = await service.said('listening');
  const arms = {
    open: { agent: new Agent({ keepAlive: true }), ms: [] as number[] },
    opened: { agent: new Agent({ keepAlive: false }), ms: [] as number[] },
  };
  let calls = 0;
  const mutate = defineTool({
    inputSchema: z.object({ ref: z.string() }),
    effect: 'mutate',
    execute: async ({ ref }, { fence }) => {
      const { agent, ms } = calls++ % 2 === 0 ? arms.open : arms.opened;
      await fence();
      const passed = process.hrtime.bigint();
      ms.push(Number((await arrival(port, agent)) - passed) / 1e6);
      return toolText(ref);
    },
    verify: () => ({ outcome: 'absent' }),
  });
  const bench = defineAgent({
    name: 'bench',
    model: instantModel(),
    instructions: 'You are measured.',
    tools: { mutate },
  });
  const worker = await createWorker({
    agents: [bench],
    address,
    taskQueue,
    journal: await context.temporaryDir(),
  });
  const running = worker.run();
  try {
    const id = randomUUID();
    const turns = WARM_UP + (context.quick ? 20 : 400);
    const message = jobText({ id, turns, tool: 'mutate' });
    await (await sessions.start('bench', { id, message, mode: 'task', taskQueue })).result();
  } finally {
    worker.shutdown();
    await running;
    await service.kill();
    for (const { agent } of Object.values(arms)) agent.destroy();
  }
  const line = ({ ms }: { ms: number[] }, what: string): Line => {
    const counted = ms.slice(WARM_UP / 2);
    return {
      measure: 'gap',
      what,
      value: median(counted),
      unit: 'ms, the median',
      of: { slowestMs: Math.max(...counted) },
      samples: { ms: counted },
      note: `${counted.length} calls, the service on the same machine`,
    };
  };
  return [
    line(arms.open, 'the gap: from the last fence to the request at the service, over an open connection'),
    line(arms.opened, 'the same, over a connection that is opened for it'),
  ];
};
