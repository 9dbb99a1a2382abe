/** Streams: how long a token of the model is on its way to a reader in the same process, and what many open streams take. */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { LanguageModelV3, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { createWorker, defineAgent, type Session } from '../../src/index.ts';
import type { Measure } from '../support/context.ts';

const TOKENS = 60;
const PAUSE_MS = 50;

/** Says tokens that are the time of their saying. */
function clockModel(): LanguageModelV3 {
  const stream = (): ReadableStream<LanguageModelV3StreamPart> =>
    new ReadableStream({
      start: async (controller) => {
        controller.enqueue({ type: 'stream-start', warnings: [] });
        controller.enqueue({ type: 'text-start', id: '0' });
        for (let n = 0; n < TOKENS; n++) {
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
          controller.enqueue({ type: 'text-delta', id: '0', delta: `${performance.now()} ` });
        }
        controller.enqueue({ type: 'text-end', id: '0' });
        const inputTokens = { total: 100, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
        const outputTokens = { total: TOKENS, text: undefined, reasoning: undefined };
        const usage = { inputTokens, outputTokens };
        controller.enqueue({ type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage });
        controller.close();
      },
    });
  return {
    specificationVersion: 'v3',
    provider: 'bench',
    modelId: 'clock',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('it streams only')),
    doStream: async () => ({ stream: stream() }),
  };
}

/** Milliseconds from each token's saying to its part. */
async function delays(session: Session): Promise<number[]> {
  const found: number[] = [];
  for await (const part of session.stream({ since: 'start' })) {
    // A reader who comes late gets several tokens at once: the first has waited longest.
    if (part.type === 'text') found.push(performance.now() - Number.parseFloat(part.text));
  }
  return found;
}

/** Sessions that speak at the same time, and then as many streams as a server may have, of sessions at rest. */
export const stream: Measure = async (context) => {
  const { address } = await context.server();
  const { sessions } = await context.scene();
  const taskQueue = `stream-${randomUUID()}`;
  const clock = defineAgent({ name: 'clock', model: clockModel(), instructions: 'You are measured.' });
  const worker = await createWorker({
    agents: [clock],
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
    const ms = (await Promise.all(started.map(delays))).flat().sort((a, b) => a - b);
    const at = (share: number): number => ms[Math.floor(ms.length * share)] ?? Number.NaN;
    const what = `from the model's token to the reader, same process, ${speaking} sessions at once`;
    const line = { measure: 'stream', unit: 'ms', note: `${ms.length} parts of ${speaking * TOKENS} tokens` };

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
      { ...line, what: `${what}, the median`, value: at(0.5), target: { atMost: 10 } },
      { ...line, what: `${what}, the 99th of a hundred`, value: at(0.99), target: { atMost: 60 } },
      {
        measure: 'stream',
        what: `memory of ${open} open streams in one process`,
        value: rss / 2 ** 20,
        unit: 'MiB',
        target: { atMost: 500 },
        note: 'sessions at rest',
      },
    ];
  } finally {
    worker.shutdown();
    await running;
  }
};
