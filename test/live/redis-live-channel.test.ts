import { Client } from '@temporalio/client';
import fc from 'fast-check';
import { createClient } from 'redis';
import { expect, inject, onTestFinished, test } from 'vitest';
import {
  type LiveCoding,
  RedisLiveChannel,
  type Session,
  Sessions,
  type StreamPart,
} from '../../src/index.ts';
import { createHarness, type Harness, type Script } from '../../src/testing/index.ts';
import { Codec, SEALED } from '../support/codec.ts';
import { polled } from '../support/polled.ts';
import { NO_REDIS, type RedisServer, startRedis } from '../support/redis.ts';

const AGENTS = new URL('../support/live-agents.ts', import.meta.url);

interface Fleet extends Harness {
  redis: RedisServer;
  /** Sessions of another process than the worker's. Each call makes a client and a channel of its own. */
  elsewhere(): Sessions;
  start(message: string): Promise<Session>;
}

/** A worker process, and Redis between it and this process. */
async function openFleet(script: Script, sealed?: string): Promise<Fleet> {
  const redis = await startRedis();
  const harness = await createHarness({
    script,
    module: AGENTS,
    server: inject('temporal'),
    env: { LIVE: redis.url, ...(sealed !== undefined && { SEALED: sealed }) },
  });
  onTestFinished(() => harness.stop());
  const { connection, options } = harness.client;
  const { namespace } = options;
  const codecs = sealed === undefined ? [] : [new Codec(sealed)];
  const elsewhere = (): Sessions => {
    const live = new RedisLiveChannel(redis.url);
    onTestFinished(() => live.close());
    const client = new Client({ connection, namespace, dataConverter: { payloadCodecs: codecs } });
    return new Sessions(client, { taskQueue: harness.taskQueue, live });
  };
  await harness.startWorkerProcess();
  const start = (message: string): Promise<Session> => elsewhere().start('speaker', { message });
  return { ...harness, redis, elsewhere, start };
}

const coding: LiveCoding = {
  encode: async (value) => Buffer.from(JSON.stringify(value)),
  decode: async (bytes) => JSON.parse(String(bytes)) as unknown,
};

const words = (n: number): string => Array.from({ length: n }, (_, i) => `word${i}`).join(' ');

/** Reads a stream to its end. `parts` grows meanwhile. */
function reading(session: Session): { parts: StreamPart[]; end: Promise<void> } {
  const parts: StreamPart[] = [];
  const read = async (): Promise<void> => {
    for await (const part of session.stream()) parts.push(part);
  };
  return { parts, end: read() };
}

const textOf = (parts: readonly StreamPart[]): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** Where the recorded answer is. */
const answerAt = (parts: readonly StreamPart[]): number =>
  parts.findIndex((part) => part.type === 'message' && part.role === 'assistant');

const untilText = (parts: readonly StreamPart[], isEnough: (text: string) => boolean): Promise<void> =>
  polled(
    async () => isEnough(textOf(parts)),
    () => JSON.stringify(parts),
  );

test.skipIf(NO_REDIS)(
  'each of 60 tokens of a worker elsewhere is a part, and no heartbeat has text',
  async () => {
    const answer = words(60);
    const fleet = await openFleet(() => ({ text: answer, chunks: 60, chunkDelayMs: 30 }));
    const session = await fleet.start('speak');
    const { parts, end } = reading(session);
    await untilText(parts, (text) => text.includes('word30'));
    const { raw } = await fleet.client.workflow.getHandle(session.id).describe();
    const heartbeats = raw.pendingActivities?.flatMap(
      ({ heartbeatDetails }) => heartbeatDetails?.payloads ?? [],
    );
    expect(heartbeats?.map(({ data }) => String(Buffer.from(data ?? []))).join()).not.toContain('word');
    await end;
    expect(parts.slice(0, answerAt(parts)).filter(({ type }) => type === 'text')).toHaveLength(60);
    expect(parts.map(({ type }) => type)).not.toContain('reset');
    expect(textOf(parts)).toBe(answer);
    // Streams expire.
    const [stream = ''] = (await fleet.redis.ask('KEYS', 'perdure:live:*')) as string[];
    expect(await fleet.redis.ask('TTL', stream)).toBeGreaterThan(0);
    expect(await fleet.redis.ask('TTL', stream)).toBeLessThanOrEqual(60);
  },
);

test.skipIf(NO_REDIS)(
  'who comes late gets all that was said, also after more pieces than a stream keeps',
  async () => {
    const answer = words(600);
    const said = answer.slice(0, 0.9 * answer.length);
    const reply = { text: answer, chunks: 600, chunkDelayMs: 2 };
    const fleet = await openFleet(() => ({ fault: 'hang', reply, afterChunks: 540 }));
    const session = await fleet.start('speak');
    const early = reading(session);
    await untilText(early.parts, (text) => text.length >= said.length);
    const [stream = ''] = (await fleet.redis.ask('KEYS', 'perdure:live:*')) as string[];
    expect(await fleet.redis.ask('XLEN', stream)).toBeLessThan(300);
    const late = reading(fleet.elsewhere().get(session.id));
    await untilText(late.parts, (text) => text.length >= said.length);
    expect(textOf(late.parts)).toBe(textOf(early.parts));
    await session.cancel();
    await Promise.all([early.end, late.end]);
  },
);

test.skipIf(NO_REDIS)(
  'Redis dies in mid-answer: the answer comes all the same, and is live again when Redis is back',
  async () => {
    const answer = words(200);
    const fleet = await openFleet(() => ({ text: answer, chunks: 200, chunkDelayMs: 40 }));
    const session = await fleet.start('speak');
    const { parts, end } = reading(session);
    await untilText(parts, (text) => text.includes('word20 '));
    await fleet.redis.kill();
    const before = textOf(parts).length;
    await fleet.redis.restart();
    await untilText(parts, (text) => text.length > before);
    expect(answerAt(parts)).toBe(-1);
    await end;
    expect(parts.map(({ type }) => type)).not.toContain('reset');
    expect(textOf(parts)).toBe(answer);
    expect(parts.at(-1)).toMatchObject({ type: 'phase', phase: 'idle' });
  },
);

test.skipIf(NO_REDIS)(
  'Redis hangs in mid-answer: the answer is recorded meanwhile, and the next is live again',
  async () => {
    const fleet = await openFleet(({ lastUserText }) => ({
      text: `${lastUserText}: ${words(40)}`,
      chunks: 40,
      chunkDelayMs: 40,
    }));
    const session = await fleet.start('first');
    const first = reading(session);
    await untilText(first.parts, (text) => text.includes('word5 '));
    fleet.redis.freeze();
    await first.end;
    expect(textOf(first.parts)).toBe(`first: ${words(40)}`);
    expect(first.parts.at(-1)).toMatchObject({ type: 'phase', phase: 'idle' });
    fleet.redis.wake();
    // The connections that hung are given up after two seconds.
    await polled(
      async () => {
        await session.send('again');
        const { parts, end } = reading(session);
        await end;
        return parts.slice(0, answerAt(parts)).filter(({ type }) => type === 'text').length > 10;
      },
      () => 'no answer was live',
    );
  },
);

test.skipIf(NO_REDIS)('what goes through Redis is encoded by the codecs of worker and client', async () => {
  const answer = words(60);
  const reply = { text: answer, chunks: 60, chunkDelayMs: 5 };
  const fleet = await openFleet(() => ({ fault: 'hang', reply, afterChunks: 50 }), 'word');
  const session = await fleet.start('speak');
  const { parts, end } = reading(session);
  await untilText(parts, (text) => text.includes('word45 '));
  const [stream = ''] = (await fleet.redis.ask('KEYS', 'perdure:live:*')) as string[];
  const entries = JSON.stringify(await fleet.redis.ask('XRANGE', stream, '-', '+'));
  expect(entries).not.toContain('word');
  expect(entries).toContain(SEALED.toString());
  await session.cancel();
  await end;
});

test('another URL than that of a Redis is refused', () => {
  expect(() => new RedisLiveChannel('http://localhost')).toThrow('write redis://user:password@host:6379');
});

test.skipIf(NO_REDIS)('who leaves and comes back while Redis answers gets all that was said', async () => {
  const { url } = await startRedis();
  const redis = createClient({ url, RESP: 2 });
  await redis.connect();
  onTestFinished(() => redis.destroy());
  const live = new RedisLiveChannel(url);
  onTestFinished(() => live.close());
  const write = (at: number): Promise<unknown> => {
    const entry = JSON.stringify({ request: '1.0', at, said: [{ type: 'text', text: `${at} ` }] });
    return redis.sendCommand(['XADD', 'perdure:live:run:1', '*', 'entry', entry]);
  };
  const listen = (): { text: () => string; leave: () => void } => {
    let text = '';
    const say = (delta: { text: string }): void => {
      text += delta.text;
    };
    const leave = live.read({ runId: 'run', activityId: '1' }, coding, { begin: () => undefined, say });
    return { text: () => text, leave };
  };
  const isBlocked = async (): Promise<boolean> =>
    /flags=b.*cmd=xread/.test(await redis.sendCommand<string>(['CLIENT', 'LIST']));
  let whole = '';
  let reader = listen();
  for (let at = 0; at < 30; at++) {
    await polled(isBlocked, () => 'it does not block');
    const written = write(at);
    whole += `${at} `;
    reader.leave();
    reader = listen();
    await written;
    await expect.poll(() => reader.text()).toBe(whole);
  }
});

test.skipIf(NO_REDIS)(
  'a reader has what was written, whatever connections are cut and streams are lost',
  async () => {
    const redis = await startRedis();
    const channel = (): RedisLiveChannel => {
      const live = new RedisLiveChannel(redis.url);
      onTestFinished(() => live.close());
      return live;
    };
    const key = { runId: 'run', activityId: '1' };
    const listen = (): { text: () => string; resets: () => number } => {
      const requests: string[] = [];
      let text = '';
      channel().read(key, coding, {
        begin: (request) => requests.push(request),
        say: (delta) => {
          text += delta.text;
        },
      });
      return { text: () => text, resets: () => requests.length };
    };
    const readers = [listen()];
    const writer = channel().write(key, coding);
    writer.begin('1.0');
    let whole = '';
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('say', 'say', 'say', 'say', 'pause', 'cut', 'lose', 'join'), {
          maxLength: 300,
        }),
        async (steps) => {
          for (const step of steps) {
            if (step === 'say') {
              const text = `${whole.length} `;
              whole += text;
              writer.say({ type: 'text', text });
            }
            // Other things happen at any moment between two entries.
            if (step === 'pause') await new Promise((resolve) => setImmediate(resolve));
            if (step === 'cut') await redis.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
            if (step === 'lose' && whole.length % 7 === 0) await redis.ask('DEL', 'perdure:live:run:1');
            if (step === 'join' && readers.length < 10) readers.push(listen());
            for (const { text } of readers) expect(whole.startsWith(text())).toBe(true);
          }
        },
      ),
      { numRuns: 40 },
    );
    // What was lost comes with the next whole entry.
    let looks = 0;
    await polled(
      async () => {
        if (readers.every(({ text }) => text() === whole)) return true;
        // Between two of them there is time for all to be read.
        for (let n = 0; looks % 8 === 0 && n < 300; n++) {
          whole += '.';
          writer.say({ type: 'text', text: '.' });
        }
        looks += 1;
        return false;
      },
      () => JSON.stringify(readers.map(({ text }) => text().length)),
    );
    expect(readers.map(({ resets }) => resets())).toEqual(readers.map(() => 1));
  },
);
