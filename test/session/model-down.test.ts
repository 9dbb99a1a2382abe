import { expect, test } from 'vitest';
import { type Checkpoint, TemporalSaver } from '../../src/index.ts';
import { runCheckpoint, type TerminalResult, terminalResult } from '../../src/saver/records/index.ts';
import type { Fault } from '../../src/testing/index.ts';
import { until, untilPhase } from '../support/stage.ts';
import { answered, ask, passes, reservedForFirstCall } from './support/faulty.ts';
import { expectSound } from './support/sound.ts';

test.each([400, 401])('HTTP %i is not asked again and costs nothing', async (status) => {
  const { stage, session } = await ask(passes(1, { fault: 'status', status, message: 'not like this' }));
  const { wait, budget } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({ reason: 'provider_rejected', message: `HTTP ${status}: not like this` });
  expect(stage.model.requests).toHaveLength(1);
  expect(budget.spent).toMatchObject({ inputTokens: 0, outputTokens: 0, usd: 0, turns: 0 });
  expect(budget.reserved).toEqual({ usd: 0, tokens: 0 });
  await session.resume();
  expect((await answered(stage, session)).requests).toBe(2);
  await expectSound(stage, session);
});

test.each([429, 500])('HTTP %i is asked again by Temporal alone, and costs nothing', async (status) => {
  const { stage, session } = await ask(passes(1, { fault: 'status', status }));
  const { view, requests } = await answered(stage, session);
  expect(requests).toBe(2);
  const [, reply] = stage.model.requests;
  // The endpoint estimates a quarter of the bytes; what is charged is exactly what it said.
  const input = Math.ceil(
    Buffer.byteLength(
      JSON.stringify(reply?.request.body['messages']) + JSON.stringify(reply?.request.body['tools']),
    ) / 4,
  );
  expect(view.budget.spent).toMatchObject({
    inputTokens: input,
    outputTokens: 1,
    usd: (input + 1) / 1e6,
    turns: 1,
  });
  await expectSound(stage, session);
});

test('AI SDK retries times activity retries: a provider that stays down is asked five times in all, then the session waits visibly, and costs nothing', async () => {
  const { stage, session } = await ask((request) =>
    request.repeat < 5
      ? { fault: 'status', status: 429, headers: { 'retry-after-ms': '10' } }
      : { text: 'fine' },
  );
  const { wait, budget } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({ reason: 'provider_unavailable', message: 'HTTP 429: scripted status 429' });
  expect(stage.model.requests).toHaveLength(5);
  expect(budget.spent).toMatchObject({ inputTokens: 0, usd: 0 });
  await session.resume();
  expect((await answered(stage, session)).requests).toBe(6);
  await expectSound(stage, session);
});

test('a transient error that ends a run for ever: here it is no terminal result, and the run goes on when it is over', async () => {
  let down = true;
  const { stage, session } = await ask(() =>
    down ? { fault: 'status', status: 503, headers: { 'retry-after-ms': '10' } } : { text: 'fine' },
  );
  const saver = new TemporalSaver(stage.client);
  const record = async (): Promise<{ state: unknown; result: TerminalResult | null }> => {
    const latest = (await saver.get(session.id)) as Checkpoint;
    return { state: runCheckpoint(latest).payload['state'], result: terminalResult(latest) };
  };
  for (const _ of ['at first', 'and again']) {
    const { status, wait } = await untilPhase(session, 'waiting');
    expect(status).toEqual({ kind: 'active' });
    expect(wait).toMatchObject({
      reason: 'provider_unavailable',
      next: { action: 'resume', sessionId: session.id },
    });
    expect(await record()).toEqual({ state: 'degraded', result: null });
    const asked = stage.model.requests.length;
    await session.resume();
    await expect
      .poll(() => stage.model.requests.length, { timeout: 60_000 })
      .toBeGreaterThanOrEqual(asked + 5);
  }
  await untilPhase(session, 'waiting');
  down = false;
  await session.resume();
  await answered(stage, session);
  await session.cancel();
  await session.result();
  expect(await record()).toEqual({
    state: 'cancelled',
    result: { state: 'cancelled', text: 'fine', turns: 1 },
  });
});

test('retry-after is honoured: longer than the first interval of the retry policy', async () => {
  const { stage, session } = await ask(passes(1, { fault: 'status', status: 429, retryAfterSeconds: 3 }));
  await answered(stage, session);
  const [first, second] = stage.model.requests.map(({ at }) => Date.parse(at));
  expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(2_990);
  await expectSound(stage, session);
});

test('a provider that asks for an hour is not waited for in silence', async () => {
  const { stage, session } = await ask(passes(1, { fault: 'status', status: 429, retryAfterSeconds: 3_600 }));
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({ reason: 'provider_unavailable', message: expect.stringContaining('3600') });
  await session.resume();
  expect((await answered(stage, session)).requests).toBe(2);
  await expectSound(stage, session);
});

test.each<[string, Fault]>([
  ['hangs before its first byte', { fault: 'hang' }],
  ['hangs in mid-stream', { fault: 'hang', afterChunks: 3 }],
])('a provider that %s is given up after modelTimeout, charged, and asked again', async (_, fault) => {
  const { stage, session } = await ask(passes(1, fault), { modelTimeout: 300 });
  const { view, requests } = await answered(stage, session);
  expect(requests).toBe(2);
  expect(view.notices).toMatchObject([
    { kind: 'provider_unavailable', message: 'the provider sent nothing for 300 ms' },
  ]);
  expect(view.budget.spent.inputTokens).toBeGreaterThan(await reservedForFirstCall(stage, session));
});

test.each<[string, Fault]>([
  ['is cut before its first byte', { fault: 'cut', afterChunks: 0 }],
  ['is cut in mid-stream', { fault: 'cut', afterChunks: 3 }],
  ['a gateway gives up on', { fault: 'status', status: 504 }],
])('a request that %s may have been billed: charged, and asked again', async (_, fault) => {
  const { stage, session } = await ask(passes(1, fault));
  const { view, requests } = await answered(stage, session);
  expect(requests).toBe(2);
  expect(view.notices).toMatchObject([{ kind: 'provider_unavailable' }]);
  expect(view.budget.spent.inputTokens).toBeGreaterThan(await reservedForFirstCall(stage, session));
});

test('an endpoint that is not there costs nothing, and is visible', async () => {
  const { stage, session } = await ask(() => ({ text: 'fine' }));
  await untilPhase(session, 'idle');
  const before = (await session.budget()).spent;
  await stage.model.stop();
  await session.send('again');
  const { wait } = await until(session, ({ phase }) => phase === 'waiting');
  expect(wait).toMatchObject({
    reason: 'provider_unavailable',
    message: expect.stringMatching(/ECONNREFUSED|connect/i),
  });
  expect((await session.budget()).spent).toMatchObject({
    inputTokens: before.inputTokens,
    outputTokens: before.outputTokens,
  });
  await expectSound(stage, session);
});
