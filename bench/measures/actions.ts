/**
 * What Temporal Cloud bills: Actions, as the server itself counts them.
 *
 * The server's metric `action` has each of them with its type: starts of workflows, activities and their retries,
 * timers, signals, updates, queries, upserts of search attributes, markers, and heartbeats, which no history has.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LanguageModelV3 } from '@ai-sdk/provider';
import { createWorker, defineAgent } from '../../src/index.ts';
import type { Measure } from '../support/context.ts';
import { type Actions, actionsLine, countedScene, minus, sum } from '../support/counted.ts';
import { instantModel } from '../support/instant-model.ts';
import { jobText } from '../support/job.ts';
import type { Line } from '../support/report.ts';
import type { Scene } from '../support/scene.ts';

/** How long the slow model streams, in seconds. */
const STREAM_S = 10;

/** A separate worker with a slow model. */
async function streaming(
  { sessions, address }: Scene,
  journal: string,
): Promise<{ run: () => Promise<unknown>; close: () => Promise<void> }> {
  const taskQueue = `stream-${randomUUID()}`;
  const model = instantModel();
  const slow: LanguageModelV3 = {
    ...model,
    doStream: async (options) => {
      const { stream, ...more } = await model.doStream(options);
      const word = (delta: string) => ({ type: 'text-delta' as const, id: '0', delta });
      const words = async function* () {
        for await (const part of stream) {
          yield part;
          if (part.type !== 'text-start') continue;
          for (let i = 0; i < STREAM_S * 10; i++) {
            await sleep(100);
            yield word('word ');
          }
        }
      };
      return { stream: ReadableStream.from(words()), ...more };
    },
  };
  const agent = defineAgent({ name: 'bench', model: slow, instructions: 'You are measured.' });
  const worker = await createWorker({ agents: [agent], address, taskQueue, journal });
  const running = worker.run();
  return {
    run: async () => {
      const message = jobText({ id: randomUUID(), turns: 0, tool: 'read' });
      await (await sessions.start('bench', { message, mode: 'task', taskQueue })).result();
    },
    close: async () => {
      worker.shutdown();
      await running;
    },
  };
}

/** Sessions with one kind of turn, a session that waits, and a slow reply of a model. */
export const actions: Measure = async (context) => {
  const { scene, during } = await countedScene(context);
  const line = (what: string, found: Actions, more: Partial<Line> = {}): Line =>
    actionsLine('actions', what, found, more);
  const turns = 10;
  // The difference between two sessions, divided by the difference of their turns. The fixed cost of a session cancels
  // out.
  const once = async (run: (count: number) => Promise<unknown>): Promise<Actions> =>
    minus(await during(() => run(2 * turns)), await during(() => run(turns)), turns);
  // The median of three: on a busy machine, a worker checks once more before a mutation.
  const ofTurn = async (run: (count: number) => Promise<unknown>): Promise<Actions> => {
    const found = [await once(run), await once(run), await once(run)];
    return found.sort((a, b) => sum(a) - sum(b))[1] ?? {};
  };
  const streamed = await streaming(scene, await context.temporaryDir());
  const waitMs = context.quick ? 3_000 : 30_000;
  await scene.holdOurs(1);
  const lines = [
    line('Actions of a turn with a read', await ofTurn((count) => scene.runOurs('read', count)), {
      target: { atMost: 1 },
    }),
    line('Actions of a turn with a mutation', await ofTurn((count) => scene.runOurs('mutate', count)), {
      target: { atMost: 2 },
    }),
    line('Actions of a turn of the floor', await ofTurn((count) => scene.runFloor(count))),
    line('Actions of a session of one message and one reply', await during(() => scene.runOurs('read', 0))),
    line('Actions of a session that waits, an hour', await during(() => sleep(waitMs)), {
      target: { atMost: 0 },
      note: `seen for ${waitMs / 1_000} s; it has no timer`,
    }),
    line(`Actions of a session of one reply that streams for ${STREAM_S} s`, await during(streamed.run), {
      note: 'heartbeats carry the text; `maxHeartbeatThrottleInterval` of the worker thins them out',
    }),
  ];
  await streamed.close();
  return lines;
};
