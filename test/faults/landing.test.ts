/** A fault that did not land fails its run: points of the lab with their fault taken out, on a real lane. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Lane, openLane } from '../../faults/lane.ts';
import type { FaultPoint } from '../../faults/points/point.ts';
import { replyLost } from '../../faults/points/reply-lost.ts';
import { requestLate } from '../../faults/points/request-late.ts';
import { signals } from '../../faults/points/signals.ts';
import { slowTool } from '../../faults/points/slow-tool.ts';
import { tell } from '../../faults/run.ts';
import type { Stage } from '../../faults/stage.ts';

let lane: Lane;
beforeAll(async () => {
  lane = await openLane('ignored', 'dev');
});
afterAll(() => lane.close());

/** What is wrong with a point when its stage is not what it takes it for. */
async function wrong(
  point: FaultPoint,
  spoil: (stage: Stage) => void,
  [step] = point.steps,
): Promise<string[]> {
  if (step === undefined) throw new Error(`${point.name} has no step`);
  const spoilt: FaultPoint = {
    ...point,
    inject: (stage) => {
      spoil(stage);
      return point.inject(stage);
    },
  };
  const story = {
    point: point.name,
    step,
    keys: 'ignored',
    kinds: ['mutate'],
    turns: 1,
    strike: 1,
    messages: false,
    stack: 'dev',
    workers: 1,
    seed: 7,
  } as const;
  const { breaches } = await tell(spoilt, story, lane);
  return breaches.map(({ breach, text }) => `${breach}: ${text}`);
}

test('a wire that nothing goes through loses no reply', async () => {
  const found = await wrong(replyLost, (stage) => {
    const start = stage.startWorker.bind(stage);
    stage.startWorker = (options) => start({ ...options, env: {} });
  });
  expect(found).toContainEqual(expect.stringContaining('0 connections broken, of 1 effects'));
  expect(found).toContainEqual(expect.stringMatching(/^not-landed/));
});

const LATE = /landed before its|requests were late/;

test('a request that is accepted before its worker dies is not late', async () => {
  const found = await wrong(requestLate, ({ lane: { control } }) => {
    const { held } = control;
    control.held = async (min) => {
      control.held = held;
      const all = await held(min);
      await control.release();
      return all;
    };
  });
  expect(found).toContainEqual(expect.stringMatching(LATE));
  expect(found).toContainEqual(expect.stringMatching(/^not-landed/));
});

test('a request that somebody else lets go is not late', async () => {
  const found = await wrong(slowTool, (stage) => {
    const until = stage.until.bind(stage);
    stage.until = async (condition) => {
      await until(condition);
      await stage.lane.control.release();
    };
  });
  expect(found).toContainEqual(expect.stringMatching(LATE));
  expect(found).toContainEqual(expect.stringMatching(/^not-landed/));
});

test('a copy that is refused is not passed over', async () => {
  const found = await wrong(signals, (stage) => {
    const begin = stage.begin.bind(stage);
    stage.begin = async (options) => {
      await begin(options);
      for (const { session } of stage.actors) {
        const send = session.send.bind(session);
        let sent = 0;
        session.send = (message) => {
          sent += 1;
          return sent === 1 ? send(message) : Promise.reject(new Error('refused: a copy'));
        };
      }
    };
  });
  expect(found).toContainEqual(expect.stringContaining('refused: a copy'));
});

test('two decisions that are both taken, or neither, are not passed over', async () => {
  const found = await wrong(
    signals,
    (stage) => {
      const begin = stage.begin.bind(stage);
      stage.begin = async (options) => {
        await begin(options);
        for (const { session } of stage.actors)
          session.decide = (callId) => Promise.resolve({ callId, status: 'ready' });
      };
    },
    ['approval'],
  );
  expect(found).toContainEqual(expect.stringContaining('taken: [{"by":"'));
});
