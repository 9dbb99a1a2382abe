/** A result of 50 MB: what it adds to the history, and whether runs that carry its reference store it again. */
import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { createWorker, DirectoryValues, defineAgent, defineTool, Sessions } from '../../src/index.ts';
import { runsUpTo } from '../../src/temporal/executions.ts';
import type { Measure } from '../support/context.ts';
import { instantModel } from '../support/instant-model.ts';
import { jobText, toolText } from '../support/job.ts';

const MB = 1_000_000;
const PLAN = { full: { rolls: 100, bytes: 50 * MB }, quick: { rolls: 5, bytes: 5 * MB } } as const;

/** A directory that counts what is written to it. */
class CountedValues extends DirectoryValues {
  readonly puts: string[] = [];

  override put(digest: string, bytes: Uint8Array, owner: string): Promise<void> {
    this.puts.push(digest);
    return super.put(digest, bytes, owner);
  }
}

export const values: Measure = async (context) => {
  const { rolls, bytes } = PLAN[context.quick ? 'quick' : 'full'];
  const { address } = await context.server();
  const { client } = await context.scene();
  const taskQueue = `values-${randomUUID()}`;
  const store = new CountedValues(await context.temporaryDir());
  const large = 'é'.repeat(bytes / 2);
  let isLarge = false;
  const mutate = defineTool({
    inputSchema: z.object({ ref: z.string() }),
    execute: ({ ref }) => (isLarge && ref.startsWith('item-1-') ? large : toolText(ref)),
    verify: () => ({ outcome: 'absent' }),
  });
  const agent = { model: instantModel(), instructions: 'You are measured.', tools: { mutate } };
  const worker = await createWorker({
    agents: [
      defineAgent({ ...agent, name: 'whole', runTurns: false }),
      defineAgent({ ...agent, name: 'rolling', runTurns: 1 }),
    ],
    address,
    taskQueue,
    values: store,
  });
  const running = worker.run();
  try {
    const sessions = new Sessions(client, { taskQueue, values: store });
    const run = async (name: string, turns: number): Promise<string> => {
      const id = randomUUID();
      const message = jobText({ id, turns, tool: 'mutate' });
      await (await sessions.start(name, { id, message, mode: 'task' })).result();
      return id;
    };
    const sizeOf = async (id: string): Promise<number> =>
      (await client.workflow.getHandle(id).describe()).historySize ?? Number.NaN;
    const small = await sizeOf(await run('whole', 1));
    isLarge = true;
    const growth = (await sizeOf(await run('whole', 1))) - small;
    store.puts.length = 0;
    const id = await run('rolling', rolls);
    const { runId } = await client.workflow.getHandle(id).describe();
    const runs = (await runsUpTo(client, id, runId)).length;
    const line = { measure: 'values', unit: '' };
    return [
      {
        ...line,
        what: `bytes of history that a result of ${bytes / MB} MB adds, against one of 1 KB`,
        value: growth,
        target: { atMost: 2_048 },
      },
      {
        ...line,
        what: 'values that were stored twice over all runs of a session',
        value: store.puts.length - new Set(store.puts).size,
        target: { atMost: 0 },
        of: { runs, stored: store.puts.length },
      },
    ];
  } finally {
    worker.shutdown();
    await running;
  }
};
