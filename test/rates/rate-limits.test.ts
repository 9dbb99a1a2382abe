/** Sessions under the rate limit of a provider that enforces it with 429s. */

import { defaultPayloadConverter } from '@temporalio/common';
import { expect, inject, onTestFinished, test } from 'vitest';
import { parseInput } from '../../src/contract/inputs.ts';
import { WORKFLOW } from '../../src/contract/names.ts';
import { RATES, type RateExchange, type RateView, rateExchangeSchema } from '../../src/contract/rates.ts';
import { rateLimiterId } from '../../src/contract/workflow-ids.ts';
import type { RateLimit, Session } from '../../src/index.ts';
import { newRates } from '../../src/rates/rate-state.ts';
import { createHarness, type Harness } from '../../src/testing/index.ts';
import { readStored } from '../history/stored.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { limited, workerOptions } from '../support/limited-agents.ts';
import { polled } from '../support/polled.ts';
import { limitedProvider, type Provider } from './support/provider.ts';

const AGENTS = new URL('../support/limited-agents.ts', import.meta.url);
const LIMIT = { tokens: 3_000, windowMs: 3_000 };

interface Stage extends Harness {
  provider: Provider;
  /** Starts sessions of tenants, all at once. */
  begin(...tenants: string[]): Promise<Session[]>;
}

async function openStage(limit: Parameters<typeof limitedProvider>[0] = LIMIT): Promise<Stage> {
  const provider = limitedProvider(limit);
  const harness = await createHarness({
    script: provider.script,
    agents: [limited],
    module: AGENTS,
    server: inject('temporal'),
    env: { RATE_TOKENS: String(limit.tokens), RATE_WINDOW: String(limit.windowMs) },
  });
  onTestFinished(() => harness.stop());
  const begin = (...tenants: string[]): Promise<Session[]> =>
    Promise.all(
      tenants.map((tenant) => harness.startSession('limited', { message: tenant, context: { tenant } })),
    );
  return { ...harness, provider, begin };
}

test('sessions wait for the limit without a 429, show it, and all are answered', async () => {
  const stage = await openStage();
  await stage.startWorker(workerOptions);
  const sessions = await stage.begin(...Array<string>(25).fill('a'));
  const shown = await Promise.any(
    sessions.map((session) => stage.until(session, ({ limited: wait }) => wait !== undefined)),
  );
  expect(shown).toMatchObject({
    phase: 'thinking',
    wait: null,
    limited: {
      key: 'scripted',
      message: expect.stringMatching(/^scripted allows 3000 tokens in 3 seconds, and/),
    },
  });
  const views = await Promise.all(sessions.map((session) => stage.until(session, 'idle')));
  expect(stage.provider).toMatchObject({ refused: 0, answered: { length: 25 } });
  for (const { budget, notices, limited: wait } of views) {
    expect(wait).toBeUndefined();
    expect(notices).toEqual([]);
    expect(budget.spent).toMatchObject({ turns: 1, inputTokens: 250, outputTokens: 50, lostReplies: 0 });
  }
  for (const session of sessions.slice(0, 12)) await expectFoldEqualsLive(stage.client, session);
});

const viewOf = ({ client, taskQueue }: Stage): Promise<RateView> =>
  client.workflow.getHandle(rateLimiterId(taskQueue, 'scripted')).query<RateView>(RATES.view);

const waitingAt = async (stage: Stage): Promise<RateView['waiting']> => (await viewOf(stage)).waiting;

test('a worker that is killed with grants loses them, and neither the limit nor a session is lost', async () => {
  const stage = await openStage();
  const dying = await stage.startWorkerProcess({ breakAt: ['model request'] });
  const sessions = await stage.begin(...Array.from({ length: 14 }, (_, i) => (i % 2 === 0 ? 'a' : 'b')));
  await dying.reached('model request');
  await Promise.any(
    sessions.map((session) => stage.until(session, ({ limited: wait }) => wait !== undefined)),
  );
  expect(stage.provider.answered).toEqual([]);
  await dying.crash();
  await Promise.all([stage.startWorkerProcess(), stage.startWorkerProcess()]);
  const views = await Promise.all(sessions.map((session) => stage.until(session, 'idle')));
  expect(stage.provider).toMatchObject({ refused: 0, answered: { length: 14 } });
  const lost = views.filter(({ budget }) => budget.spent.lostReplies > 0);
  expect(lost.length).toBeGreaterThan(0);
  expect(lost.length).toBeLessThan(14);
  for (const session of sessions.slice(0, 5)) await expectFoldEqualsLive(stage.client, session);
});

test('a session that is paused or cancelled leaves the queue at once, and queues again when it is resumed', async () => {
  const stage = await openStage({ tokens: 500, windowMs: 60_000 });
  await stage.startWorker({
    rateLimits: { scripted: { tokensPerMinute: 500 } } satisfies Record<string, RateLimit>,
  });
  const [first] = await stage.begin('a');
  await stage.until(first as Session, 'idle');
  const [session] = await stage.begin('b');
  if (session === undefined) throw new Error('no session');
  const untilWaiting = (sessions: number): Promise<void> =>
    polled(
      async () => (await waitingAt(stage)).length === sessions,
      () => `not ${sessions} wait`,
    );
  await stage.until(session, ({ limited: wait }) => wait !== undefined);
  expect(await waitingAt(stage)).toEqual([{ tenant: 'b', sessions: 1 }]);
  await session.pause();
  await stage.until(session, ({ phase, limited: wait }) => phase === 'paused' && wait === undefined);
  await untilWaiting(0);
  await session.resume();
  await stage.until(session, ({ limited: wait }) => wait !== undefined);
  await untilWaiting(1);
  await session.cancel();
  await stage.until(session, 'closed');
  await untilWaiting(0);
  expect(stage.provider).toMatchObject({ refused: 0, answered: { length: 1 } });
  await expectFoldEqualsLive(stage.client, session);
});

test('a 429 despite the limit holds back all sessions of the key', async () => {
  const stage = await openStage({ tokens: 600, windowMs: 3_000 });
  // Somebody else uses the key: the provider allows less than the worker was told.
  await stage.startWorker({ rateLimits: { scripted: { tokensPerMinute: 60_000, window: '3s' } } });
  const sessions = await stage.begin(...Array<string>(8).fill('a'));
  const views = await Promise.all(sessions.map((session) => stage.until(session, 'idle')));
  expect(stage.provider.answered).toHaveLength(8);
  // Seven requests go at once. After that the key rests, and then asks one at a time.
  expect(stage.provider.refused).toBeGreaterThan(0);
  expect(stage.provider.refused).toBeLessThan(25);
  for (const { budget, wait } of views) {
    expect(wait).toBeNull();
    expect(budget.spent).toMatchObject({ turns: 1, lostReplies: 0, inputTokens: 250 });
  }
});

test("a limit is learned from the provider's headers, without a 429", async () => {
  let open = (): void => {};
  const opens = new Promise<void>((resolve) => {
    open = resolve;
  });
  const stage = await openStage({ ...LIMIT, says: true, opens });
  await stage.startWorker({ rateLimits: { scripted: { fromHeaders: true, window: LIMIT.windowMs } } });
  const sessions = await stage.begin(...Array<string>(20).fill('a'));
  // At first nobody knows the limit: some requests ask.
  await expect.poll(() => waitingAt(stage)).toEqual([{ tenant: 'a', sessions: 15 }]);
  expect(stage.model.requests.length).toBeLessThanOrEqual(5);
  open();
  for (const session of sessions) await stage.until(session, 'idle');
  expect(stage.provider).toMatchObject({ refused: 0, answered: { length: 20 } });
  expect((await viewOf(stage)).limit).toEqual({ windowMs: 3_000, tokens: 3_000, fromHeaders: true });
});

test('a limit that is configured stays the maximum, whatever the headers say', async () => {
  const stage = await openStage({ tokens: 60_000, windowMs: 3_000, says: true });
  await stage.startWorker({
    rateLimits: { scripted: { fromHeaders: true, tokensPerMinute: 20_000, window: '3s' } },
  });
  const sessions = await stage.begin(...Array<string>(6).fill('a'));
  for (const session of sessions) await stage.until(session, 'idle');
  expect((await viewOf(stage)).limit).toMatchObject({ tokens: 1_000 });
  const { answered } = stage.provider;
  for (const { at } of answered)
    expect(answered.filter((each) => each.at >= at && each.at < at + 2_900).length).toBeLessThanOrEqual(3);
});

test("a 429's retry-after holds back all sessions of a key without a configured number", async () => {
  let refusedAt = 0;
  const times: number[] = [];
  const stage = await createHarness({
    script: () => {
      times.push(performance.now());
      if (refusedAt > 0) return { text: 'Done.' };
      refusedAt = performance.now();
      return { fault: 'status', status: 429, headers: { 'retry-after': '3' } };
    },
    agents: [limited],
    server: inject('temporal'),
  });
  onTestFinished(() => stage.stop());
  await stage.startWorker({ rateLimits: { scripted: { fromHeaders: true } } });
  const start = (): Promise<Session> =>
    stage.startSession('limited', { message: 'go', context: { tenant: 'a' } });
  const first = await start();
  await stage.until(first, ({ limited: wait }) => wait !== undefined);
  const others = await Promise.all([start(), start(), start()]);
  for (const session of [first, ...others]) await stage.until(session, 'idle');
  expect(times.filter((at) => at > refusedAt && at < refusedAt + 2_900)).toEqual([]);
});

test('a limiter refuses what is no exchange, and goes on', async () => {
  const stage = await openStage();
  await stage.startWorker(workerOptions);
  const [first] = await stage.begin('a');
  await stage.until(first as Session, 'idle');
  const { client } = stage;
  const limiter = client.workflow.getHandle(rateLimiterId(stage.taskQueue, 'scripted'));
  const nothing: RateExchange = { demands: [], settled: [], left: [] };
  const refused: [field: string, given: object][] = [
    ['demands', {}],
    ['limit.windowMs', { ...nothing, limit: { windowMs: 0 } }],
    ['demands.0.tokens', { ...nothing, demands: [{ id: 'd', sessionId: 's', tenant: '', tokens: 'ten' }] }],
    ['settled.0.agoMs', { ...nothing, settled: [{ id: 'd' }] }],
  ];
  for (const [field, given] of refused) {
    const sent = client.withDeadline(Date.now() + 5_000, () =>
      limiter.executeUpdate(RATES.exchange, { args: [given] }),
    );
    await expect(sent).rejects.toMatchObject({
      cause: { type: 'INVALID_ARGUMENT', message: expect.stringContaining(field), details: [{ field }] },
    });
  }
  const [second] = await stage.begin('b');
  await stage.until(second as Session, 'idle');
});

test('a limiter whose state a newer version wrote waits for a worker of that version', async () => {
  const stage = await openStage();
  await stage.startWorker(workerOptions);
  const { client, taskQueue } = stage;
  const workflowId = rateLimiterId(taskQueue, 'newer');
  const state = { ...newRates(), schema: 2 };
  const limiter = await client.workflow.start(WORKFLOW.rates, {
    workflowId,
    taskQueue,
    args: [{ key: 'newer', state }],
  });
  onTestFinished(async () => void (await limiter.terminate()));
  const failures = async (): Promise<unknown[]> => {
    const { events } = await limiter.fetchHistory();
    return (events ?? []).flatMap(
      ({ workflowTaskFailedEventAttributes: failed }) => failed?.failure?.message ?? [],
    );
  };
  await expect
    .poll(failures)
    .toEqual([expect.stringContaining('a newer version wrote the limiter of newer')]);
});

test.each(['learned-limiter-0.1.json', 'shared-limiter-0.1.json'])(
  'a limiter takes what workers sent when %s was recorded',
  (file) => {
    const given = readStored(file).decoded.events.flatMap(
      ({ workflowExecutionUpdateAcceptedEventAttributes: event }) =>
        event?.acceptedRequest?.input?.args?.payloads ?? [],
    );
    expect(given.length).toBeGreaterThan(0);
    for (const payload of given)
      expect(parseInput(rateExchangeSchema, defaultPayloadConverter.fromPayload(payload))).toMatchObject({
        ok: true,
      });
  },
);

test('a prompt that is larger than the limit waits for a person, with the name of the limit', async () => {
  const stage = await openStage({ tokens: 500, windowMs: 60_000 });
  await stage.startWorker({ rateLimits: { 'scripted:scripted:model': { tokensPerMinute: 500 } } });
  const session = await stage.startSession('limited', {
    message: 'word '.repeat(1_000),
    context: { tenant: 'a' },
  });
  const { wait } = await stage.until(session, 'waiting');
  expect(wait).toMatchObject({ reason: 'provider_rejected' });
  expect(wait?.message).toMatch(
    /^rateLimits\.scripted:scripted:model\.tokensPerMinute: the prompt has about \d+ tokens/,
  );
  expect(stage.provider.answered).toEqual([]);
});

test.each<[Record<string, unknown>, RegExp]>([
  [{}, /^rateLimits\.openai: set requestsPerMinute, tokensPerMinute or fromHeaders: true$/],
  [{ tokensPerMinute: 0 }, /^rateLimits\.openai\.tokensPerMinute: 0 must be a number above 0$/],
  [{ requestsPerMinute: Number.NaN }, /^rateLimits\.openai\.requestsPerMinute: NaN must be/],
  [{ fromHeaders: 'yes' }, /^rateLimits\.openai\.fromHeaders: "yes" must be true or false$/],
  [{ tokensPerMinuet: 5 }, /^rateLimits\.openai\.tokensPerMinuet is unknown/],
  [{ requestsPerMinute: 5, window: 'soon' }, /^rateLimits\.openai\.window is "soon": write milliseconds/],
  [
    { requestsPerMinute: 5, window: '2s' },
    /^rateLimits\.openai\.window: allows not one of 5 requestsPerMinute/,
  ],
])('the limit %j is refused by name', async (limit, message) => {
  const stage = await openStage();
  const worker = stage.startWorker({ rateLimits: { openai: limit } });
  await expect(worker).rejects.toMatchObject({
    code: 'INVALID_DEFINITION',
    message: expect.stringMatching(message),
  });
});
