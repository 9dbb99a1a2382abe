/** Two hundred sessions of two tenants under a limit of 60,000 tokens a minute, which the provider enforces. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import * as z from 'zod';
import { createWorker, defineAgent } from '../../src/index.ts';
import { startScriptedModel } from '../../src/testing/index.ts';
import type { Measure } from '../support/context.ts';

const PER_MINUTE = 60_000;
const USED = { inputTokens: 250, outputTokens: 50 } as const;
const TOKENS = USED.inputTokens + USED.outputTokens;
const TENANTS = { many: 150, few: 50 } as const;
const PLAN = { full: { windowMs: 60_000, windows: 2 }, quick: { windowMs: 5_000, windows: 1 } } as const;

export const rates: Measure = async (context) => {
  const { windowMs, windows } = PLAN[context.quick ? 'quick' : 'full'];
  const { address } = await context.server();
  const { sessions, client } = await context.scene();
  const most = (PER_MINUTE * windowMs) / 60_000;
  const answered: { at: number; tenant: string }[] = [];
  let refused = 0;
  const model = await startScriptedModel({
    script: ({ lastUserText: tenant }) => {
      const at = performance.now();
      const recent = answered.filter((each) => each.at > at - windowMs).length;
      if ((recent + 1) * TOKENS > most) {
        refused += 1;
        return { fault: 'status', status: 429 };
      }
      answered.push({ at, tenant });
      return { text: 'Done.', usage: USED };
    },
  });
  const taskQueue = `rates-${randomUUID()}`;
  const agent = defineAgent({
    name: 'limited',
    model: createOpenAICompatible({ name: 'limited', baseURL: model.url, includeUsage: true })('model'),
    instructions: 'Answer in few words. '.repeat(40),
    maxOutputTokens: 100,
    context: z.object({ tenant: z.string() }),
  });
  const worker = await createWorker({
    agents: [agent],
    address,
    taskQueue,
    journal: await context.temporaryDir(),
    rateLimits: { limited: { tokensPerMinute: PER_MINUTE, window: windowMs } },
  });
  const running = worker.run();
  const open = new Set<string>();
  let over = false;
  /** Runs one session after the other, so there is always one open session per user. */
  const user = async (tenant: string): Promise<void> => {
    while (!over) {
      const id = randomUUID();
      open.add(id);
      const given = { id, taskQueue, message: tenant, context: { tenant }, mode: 'task' } as const;
      const session = await sessions.start('limited', given);
      await session.result();
      open.delete(id);
    }
  };
  const users = Object.entries(TENANTS).flatMap(([tenant, count]) =>
    Array.from({ length: count }, () => user(tenant).catch(() => undefined)),
  );
  // Until the limit is full for the first time, everybody gets what they ask for.
  await delay(windowMs);
  const from = performance.now();
  await delay(windowMs * windows);
  over = true;
  const counted = answered.filter(({ at }) => at >= from);
  await Promise.all(
    [...open].map((id) =>
      client.workflow
        .getHandle(id)
        .terminate()
        .catch(() => undefined),
    ),
  );
  await Promise.all(users);
  worker.shutdown();
  await running;
  await model.stop();
  const few = counted.filter(({ tenant }) => tenant === 'few').length;
  const note = `150 and 50 sessions of two tenants, ${windows} windows of ${windowMs / 1_000} seconds after the first`;
  const measure = 'rates';
  return [
    {
      measure,
      what: 'used of a limit of 60,000 tokens a minute, by 200 sessions',
      value: (100 * counted.length * TOKENS) / (most * windows),
      unit: '%',
      target: { atLeast: 95 },
      note,
    },
    { measure, what: 'answers 429', value: refused, unit: 'answers', target: { atMost: 0 }, note },
    {
      measure,
      what: 'difference between the shares of two tenants',
      value: (100 * Math.abs(counted.length - 2 * few)) / counted.length,
      unit: '%',
      target: { atMost: 10 },
      note,
    },
  ];
};
