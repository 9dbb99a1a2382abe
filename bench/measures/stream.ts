/** Streams: how long a token takes from the model to a reader, and what many open streams cost. */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import {
  createWorker,
  defineAgent,
  type LiveCoding,
  RedisLiveChannel,
  type Session,
  Sessions,
} from '../../src/index.ts';
import { findRedis, type RedisServer, startRedis } from '../peers/redis.ts';
import { clock, clockModel, TOKENS } from '../support/clock-model.ts';
import type { Context, Measure } from '../support/context.ts';
import { startMeasured } from '../support/processes.ts';
import { readFloor } from '../support/redis-floor.ts';
import type { Line } from '../support/report.ts';

/** Milliseconds from each token to its stream part. */
async function delays(session: Session): Promise<number[]> {
  const found: number[] = [];
  let readsSince = Number.POSITIVE_INFINITY;
  for await (const part of session.stream({ since: 'start' })) {
    if (part.type !== 'text') continue;
    const saidAt = Number.parseFloat(part.text);
    // Tokens from before the reader came do not measure the way.
    if (saidAt > readsSince) found.push(clock() - saidAt);
    readsSince = Math.min(readsSince, clock());
  }
  return found;
}

/** The value at this share of the sorted values. */
function share(values: readonly number[], of: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * of)] ?? Number.NaN;
}

/** The median and the 99th percentile. */
function wayLines(
  where: string,
  delayMs: readonly number[],
  { speaking, atMost }: { speaking: number; atMost: number },
): Line[] {
  const what = `from the model's token to the reader, ${where}, ${speaking} sessions at once`;
  const line = {
    measure: 'stream',
    unit: 'ms',
    note: `${delayMs.length} parts of ${speaking * TOKENS} tokens`,
  };
  return [
    { ...line, what: `${what}, the median`, value: share(delayMs, 0.5), target: { atMost } },
    { ...line, what: `${what}, the 99th of a hundred`, value: share(delayMs, 0.99), target: { atMost: 60 } },
  ];
}

/** Measures a worker in another process with Redis in between, and the space of streams in Redis. */
async function throughRedis(context: Context, speaking: number): Promise<Line[]> {
  if (findRedis() === undefined) {
    console.error('stream: there is no Redis on this machine, so its figures are left out');
    return [];
  }
  const { address } = await context.server();
  const { client } = await context.scene();
  const redis = await startRedis();
  const live = new RedisLiveChannel(redis.url);
  const taskQueue = `stream-${randomUUID()}`;
  const worker = startMeasured('stream-worker', [
    address,
    taskQueue,
    await context.temporaryDir(),
    redis.url,
  ]);
  try {
    await worker.said('ready');
    const sessions = new Sessions(client, { taskQueue, live });
    const floorEnds = await readFloor(redis.url);
    const started = await Promise.all(
      Array.from({ length: speaking }, () => sessions.start('clock', { message: 'speak' })),
    );
    const ms = (await Promise.all(started.map(delays))).flat();
    const floorMs = await floorEnds();
    await redis.ask('FLUSHALL');
    const before = await usedBy(redis);
    await fill(live, 1_000);
    return [
      ...wayLines('through Redis', ms, { speaking, atMost: 25 }),
      {
        measure: 'stream',
        what: 'a bare XADD and XREAD between the same processes at that time, the 99th of a hundred',
        value: share(floorMs, 0.99),
        unit: 'ms',
        of: { median: share(floorMs, 0.5) },
        note: `${floorMs.length} entries`,
      },
      {
        measure: 'stream',
        what: 'memory of Redis for 1,000 answers of 60 tokens',
        value: ((await usedBy(redis)) - before) / 2 ** 20,
        unit: 'MiB',
        note: 'all at once; a stream expires a minute after its answer',
      },
    ];
  } finally {
    live.close();
    await worker.kill();
    await redis.kill();
  }
}

async function usedBy(redis: RedisServer): Promise<number> {
  const [, bytes = ''] = /used_memory:(\d+)/.exec(String(await redis.ask('INFO', 'memory'))) ?? [];
  return Number(bytes);
}

/** Writes answers, and returns when all are read. */
async function fill(live: RedisLiveChannel, answers: number): Promise<void> {
  const coding: LiveCoding = {
    encode: async (value) => Buffer.from(JSON.stringify(value)),
    decode: async (bytes) => JSON.parse(String(bytes)) as unknown,
  };
  await Promise.all(
    Array.from({ length: answers }, async () => {
      const key = { runId: randomUUID(), activityId: '7' };
      const writer = live.write(key, coding);
      writer.begin('1.0');
      for (let n = 0; n < TOKENS; n++) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        writer.say({ type: 'text', text: ` token ${n}` });
      }
      await new Promise<void>((resolve) => {
        const stop = live.read(key, coding, {
          begin: () => undefined,
          say: ({ text }) => {
            if (!text.includes(`token ${TOKENS - 1}`)) return;
            stop();
            resolve();
          },
        });
      });
    }),
  );
}

/** First, sessions that stream at the same time. Then, as many streams of idle sessions as a server may have. */
export const stream: Measure = async (context) => {
  const { address } = await context.server();
  const { sessions } = await context.scene();
  const taskQueue = `stream-${randomUUID()}`;
  const agent = defineAgent({ name: 'clock', model: clockModel(), instructions: 'You are measured.' });
  const worker = await createWorker({
    agents: [agent],
    address,
    taskQueue,
    journal: await context.temporaryDir(),
  });
  const running = worker.run();
  const start = (message?: string): Promise<Session> =>
    sessions.start('clock', { taskQueue, ...(message === undefined ? {} : { message }) });
  const [speaking, open] = context.quick ? [10, 50] : [100, 1_000];
  try {
    const started = await Promise.all(Array.from({ length: speaking }, () => start('speak')));
    const ms = (await Promise.all(started.map(delays))).flat();

    const resting: Session[] = [];
    while (resting.length < open)
      resting.push(...(await Promise.all(Array.from({ length: 50 }, () => start()))));
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    const reader = new AbortController();
    setMaxListeners(0, reader.signal);
    const streams = resting.map((session) => session.stream({ until: 'closed', signal: reader.signal }));
    await Promise.all(streams.map((parts) => parts.next()));
    const rss = process.memoryUsage().rss - before;
    reader.abort();
    return [
      ...wayLines('same process', ms, { speaking, atMost: 10 }),
      {
        measure: 'stream',
        what: `memory of ${open} open streams in one process`,
        value: rss / 2 ** 20,
        unit: 'MiB',
        target: { atMost: 500 },
        note: 'sessions at rest',
      },
      ...(await throughRedis(context, speaking)),
    ];
  } finally {
    worker.shutdown();
    await running;
  }
};
