/** A fault that did not land fails its run: points of the lab with their fault taken out, on a real lane. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Lane, openLane } from '../../faults/lane.ts';
import { deploy } from '../../faults/points/deploy.ts';
import type { FaultPoint } from '../../faults/points/point.ts';
import { replyLost } from '../../faults/points/reply-lost.ts';
import { requestLate } from '../../faults/points/request-late.ts';
import { serverKill } from '../../faults/points/server-kill.ts';
import { signals } from '../../faults/points/signals.ts';
import { slowTool } from '../../faults/points/slow-tool.ts';
import { toolThrows } from '../../faults/points/tool-throws.ts';
import { workerFreeze } from '../../faults/points/worker-freeze.ts';
import { type RunResult, tell } from '../../faults/run.ts';
import type { Stage } from '../../faults/stage.ts';

let lane: Lane;
beforeAll(async () => {
  lane = await openLane('ignored', 'dev');
});
afterAll(() => lane.close());

/** Tells one mutation of a point whose stage is not what it takes it for. */
function tellOn(point: FaultPoint, spoil: (stage: Stage) => void, [step] = point.steps): Promise<RunResult> {
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
  return tell(spoilt, story, lane);
}

/** What is wrong with a point then. */
async function wrong(...spoilt: Parameters<typeof tellOn>): Promise<string[]> {
  const { breaches } = await tellOn(...spoilt);
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

test('a request that is accepted when its call has settled is too late', async () => {
  const found = await wrong(requestLate, (stage) => {
    const { release } = stage.lane.control;
    stage.lane.control.release = async () => {
      stage.lane.control.release = release;
      await stage.until(({ phase }) => phase === 'idle');
      return release();
    };
  });
  expect(found).toContainEqual(expect.stringContaining('had settled before its request went on'));
  expect(found).toContainEqual(expect.stringMatching(/^not-landed/));
});

test('a worker is overtaken only where a history has its call lost', async () => {
  const found = await wrong(
    workerFreeze,
    (stage) => {
      const rest = stage.rest.bind(stage);
      stage.rest = async () => {
        await rest();
        // Looked at is a session that nobody froze.
        for (const actor of stage.actors) {
          const session = await stage.harness.startSession('careful', { id: `${actor.task.session}-other` });
          Object.assign(actor, { session });
        }
        stage.rest = rest;
      };
    },
    ['landed'],
  );
  expect(found).toContainEqual(expect.stringContaining('no heartbeat was missed'));
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
          session.decide = ({ callId }) => Promise.resolve({ callId, status: 'ready' });
      };
    },
    ['approval'],
  );
  expect(found).toContainEqual(expect.stringContaining('taken: [{"by":"'));
});

test('a history that is no session`s is a finding, and a stage that does not close leaves the verdict', async () => {
  const { breaches, observed, unclosed } = await tellOn(toolThrows, (stage) => {
    const [rest, close] = [stage.rest.bind(stage), stage.close.bind(stage)];
    let rests = 0;
    stage.rest = async () => {
      await rest();
      rests += 1;
      const { client, taskQueue } = stage.harness;
      const [{ session } = {}] = stage.actors;
      if (rests < 2 || session === undefined) return;
      await client.workflow.getHandle(session.id).terminate();
      await client.workflow.start('nothing', { workflowId: session.id, taskQueue: `nobody-${taskQueue}` });
    };
    stage.close = async () => {
      await close();
      throw new Error('planned: not closed');
    };
  });
  expect(breaches).toMatchObject([
    { breach: 'fold', text: expect.stringContaining('starts a nothing, not a session') },
  ]);
  expect(observed.sessions).toMatchObject([{ state: null, landed: { evidence: expect.any(String) } }]);
  expect(unclosed).toContain('planned: not closed');
});

test('a run of which nothing can be read has failed', async () => {
  const { breaches } = await tellOn(toolThrows, (stage) => {
    const sent = stage.sent.bind(stage);
    stage.sent = async () => {
      await sent();
      writeFileSync(stage.recordFile, 'no record\n');
    };
  });
  expect(breaches).toMatchObject([{ breach: 'error', text: expect.stringContaining('JSON') }]);
});

test.each([workerFreeze, deploy])('the clock of $name starts before the next worker does', async (point) => {
  const startedAt: number[] = [];
  const { breaches, observed, outcomes } = await tellOn(point, (stage) => {
    const start = stage.startWorker.bind(stage);
    stage.startWorker = (options) => {
      startedAt.push(Date.now());
      return start(options);
    };
  });
  expect(breaches).toEqual([]);
  const [{ landed, wentOnAt } = {}] = observed.sessions;
  expect(landed?.at).toBeLessThanOrEqual(startedAt[1] ?? 0);
  expect(outcomes).toMatchObject([{ goOnMs: [(wentOnAt ?? 0) - (landed?.at ?? 0)] }]);
});

test('the clock of server-kill starts before the server is killed, in recovery too', async () => {
  const { server } = lane;
  const kill = server.kill.bind(server);
  let killedAt = 0;
  const spoil = (): void => {
    server.kill = () => {
      server.kill = kill;
      killedAt = Date.now();
      return kill();
    };
  };
  const { breaches, observed } = await tellOn(serverKill, spoil, ['verifying']);
  expect(breaches).toEqual([]);
  const [{ landed, state } = {}] = observed.sessions;
  expect(landed?.at).toBeLessThanOrEqual(killedAt);
  // The first worker's death is what was verified, once.
  expect(state?.calls).toMatchObject([
    { status: { kind: 'completed' }, dispatches: [{ outcome: 'landed' }] },
  ]);
});
