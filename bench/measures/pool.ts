/** What a pool of money costs the sessions that share it: Actions, and time. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createWorker, defineAgent } from '../../src/index.ts';
import type { Context, Measure } from '../support/context.ts';
import { type Actions, actionsLine, countedScene, minus } from '../support/counted.ts';
import { instantModel } from '../support/instant-model.ts';
import { jobText } from '../support/job.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';
import { until } from '../support/until.ts';

/** More than any session spends. */
const CAPS = { tokens: 1_000_000_000 } as const;
/** The pause between two messages, so that each finds its session at rest. */
const REST_MS = 30;

/** Measures the time from a message to the model request. The session asks its pool in between. */
async function messages(context: Context): Promise<Record<'pooled' | 'alone', number[]>> {
  const { address, sessions } = await context.scene();
  let askedAt = 0;
  const model = instantModel(() => {
    askedAt = performance.now();
  });
  const taskQueue = `pool-${randomUUID()}`;
  const agent = defineAgent({ name: 'bench', model, instructions: 'You are measured.' });
  const worker = await createWorker({
    agents: [agent],
    address,
    taskQueue,
    journal: await context.temporaryDir(),
  });
  const running = worker.run();
  const first = { message: jobText({ id: randomUUID(), turns: 0, tool: 'read' }), taskQueue } as const;
  const pool = sessions.pool(randomUUID());
  await pool.set(CAPS);
  const pooled = await sessions.start('bench', { ...first, pool: pool.id });
  const alone = await sessions.start('bench', first);
  const asksAfter = async (session: typeof alone): Promise<number> => {
    await until(async () => (await session.state()).phase === 'idle');
    await delay(REST_MS);
    const before = performance.now();
    await session.send('Yes?');
    await until(() => askedAt > before);
    return askedAt - before;
  };
  const arms = { pooled: () => asksAfter(pooled), alone: () => asksAfter(alone) };
  await interleave(3, arms);
  const samples = await interleave(context.quick ? 5 : 30, arms);
  worker.shutdown();
  await running;
  return samples;
}

export const pool: Measure = async (context) => {
  const turns = 40;
  const sent = await messages(context);

  const scene = await context.scene();
  const shared = scene.sessions.pool(randomUUID());
  await shared.set(CAPS);
  const perTurn = (id?: string) => async (): Promise<number> => {
    const from = performance.now();
    await scene.runOurs('mutate', turns, id);
    return (performance.now() - from) / turns;
  };
  const arms = { pooled: perTurn(shared.id), alone: perTurn() };
  await interleave(1, arms);
  const times = await interleave(context.quick ? 3 : 9, arms);

  const counted = await countedScene(context);
  const other = counted.scene.sessions.pool(randomUUID());
  await other.set(CAPS);
  const costOf = async (count: number): Promise<Actions> =>
    minus(
      await counted.during(() => counted.scene.runOurs('read', count, other.id)),
      await counted.during(() => counted.scene.runOurs('read', count)),
    );
  const short = await costOf(0);
  const long = await costOf(turns);
  return [
    actionsLine('pool', 'Actions that a pool adds to a message that one reply answers', short, {
      target: { atMost: 4 },
      note: 'one request before the model is asked, and one when the session rests',
    }),
    actionsLine(
      'pool',
      `Actions that a pool adds to a turn, in a message that takes ${turns} turns`,
      minus(long, {}, turns + 1),
      { target: { atMost: 0.3 }, note: 'each turn adds 500 tokens to the prompt' },
    ),
    {
      measure: 'pool',
      what: 'wall time per turn with a pool, mutate tool, against a session without',
      value: medianRatio(times.pooled, times.alone),
      unit: '×',
      target: { atMost: 1.1 },
      of: { ms: median(times.pooled), aloneMs: median(times.alone) },
      samples: times,
      note: `sessions of ${turns} turns, interleaved`,
    },
    {
      measure: 'pool',
      what: "from send() to the model's request with a pool, against a session without",
      value: medianRatio(sent.pooled, sent.alone),
      unit: '×',
      of: { ms: median(sent.pooled), aloneMs: median(sent.alone) },
      samples: sent,
      note: `${sent.alone.length} messages to each in turn, sessions at rest`,
    },
  ];
};
