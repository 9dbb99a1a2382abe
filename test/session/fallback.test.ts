import { expect, test } from 'vitest';
import { defineAgent, type Session, TemporalSaver } from '../../src/index.ts';
import { runCheckpoint } from '../../src/saver/records/index.ts';
import type { Fault, Reply, Script } from '../../src/testing/index.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const CHEAP = { inputPerMillion: 1, outputPerMillion: 1 };
const DEAR = { inputPerMillion: 100, outputPerMillion: 100 };

/** A session with two models, of which each does what it is told, by its name. */
async function ask(
  models: Record<'first' | 'second', (repeat: number) => Reply | Fault>,
): Promise<{ stage: Stage; session: Session; asked: () => string[] }> {
  const script: Script = ({ model, repeat }) => models[model as 'first' | 'second'](repeat);
  const stage = await openStage(script);
  const agent = defineAgent({
    name: 'two',
    model: [
      { model: stage.provider('first'), price: CHEAP, maxOutputTokens: 50 },
      { model: stage.provider('second'), price: DEAR, maxOutputTokens: 100 },
    ],
    instructions: 'Answer.',
    modelTimeout: 3_000,
  });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('two', { id: stage.id(), message: 'go' });
  return { stage, session, asked: () => stage.model.requests.map(({ model }) => model) };
}

const usage = { inputTokens: 10, outputTokens: 5 };
const answer =
  (text: string): (() => Reply) =>
  () => ({ text, usage });

test.each<[string, Fault, string]>([
  ['is down', { fault: 'status', status: 503 }, 'HTTP 503: scripted status 503'],
  ['limits us', { fault: 'status', status: 429, retryAfterSeconds: 3_600 }, 'HTTP 429: scripted status 429'],
  ['refuses the key', { fault: 'status', status: 401 }, 'HTTP 401: scripted status 401'],
])(
  'the first model %s: the second answers in the same call, and the failure is on record',
  async (_, fault, message) => {
    const { stage, session, asked } = await ask({ first: () => fault, second: answer('from the second') });
    const view = await untilPhase(session, 'idle', 'waiting');
    expect(view).toMatchObject({ phase: 'idle', lastText: 'from the second', turn: 1 });
    expect(asked()).toEqual(['first', 'second']);
    expect(view.notices).toMatchObject([{ kind: 'fallback', message: `scripted.chat:first: ${message}` }]);
    // Who answered is on record, in the view of the run too.
    const { transcript, answeredBy } = await session.snapshot();
    expect(answeredBy).toEqual({ [transcript.at(-1)?.id ?? '']: 'scripted.chat:second' });
    const checkpoint = await new TemporalSaver(stage.client).get(session.id);
    expect(checkpoint === null ? null : runCheckpoint(checkpoint).payload).toMatchObject({
      requested_model: 'scripted.chat:first',
      normalized_model: 'scripted.chat:second',
      provider_adapter: 'scripted.chat',
    });
    // Nothing is billed for the first, and the second at its own price.
    expect(view.budget.spent).toMatchObject({ inputTokens: 10, outputTokens: 5, usd: (15 * 100) / 1e6 });
    await expectSound(stage, session);
  },
);

test.each<[string, Fault]>([
  ['refuses to answer', { fault: 'refusal', text: 'no' }],
  ['answers with garbage', { fault: 'garbage' }],
  ['hangs', { fault: 'hang' }],
  ['is cut in mid-stream', { fault: 'cut' }],
])('the first model %s, which may be billed: it is charged before the second is asked', async (_, fault) => {
  const { stage, session, asked } = await ask({ first: () => fault, second: answer('from the second') });
  const view = await untilPhase(session, 'idle', 'waiting');
  expect(view).toMatchObject({ phase: 'idle', lastText: 'from the second', turn: 1 });
  expect(asked()).toEqual(['first', 'second']);
  expect(view.notices).toMatchObject([
    { kind: 'fallback', message: expect.stringMatching(/^scripted\.chat:first: ./) },
  ]);
  const { checkpoints } = await expectSound(stage, session);
  const lost = checkpoints.find(({ fromModel }) => fromModel === 1);
  // The reserve covers the dearer of the two, at the more of output tokens.
  const reserved = checkpoints.find(({ budget }) => budget.reserved.tokens > 0)?.budget.reserved;
  expect(lost?.budget.spent.inputTokens).toBe(reserved?.tokens);
  expect(lost?.budget.spent.nanoUsd).toBe(reserved?.nanoUsd);
  expect(lost?.budget.reserved.tokens).toBeGreaterThan(0);
  expect(view.budget.spent).toMatchObject({ inputTokens: (reserved?.tokens ?? 0) + 10, outputTokens: 5 });
  expect(checkpoints.at(-1)?.fromModel).toBe(0);
});

test('after a fallback the next turn asks the first model again', async () => {
  let refuses = true;
  const { stage, session, asked } = await ask({
    first: () => (refuses ? { fault: 'refusal' } : { text: 'first', usage }),
    second: answer('second'),
  });
  await untilPhase(session, 'idle', 'waiting');
  refuses = false;
  await session.send('again');
  await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
  expect(asked()).toEqual(['first', 'second', 'first']);
  await expectSound(stage, session);
});

test('both models refuse: the session waits with both reasons on record, and resume starts with the first', async () => {
  const { stage, session, asked } = await ask({
    first: (repeat) => (repeat === 0 ? { fault: 'refusal' } : { text: 'changed my mind', usage }),
    second: () => ({ fault: 'status', status: 400, message: 'bad request' }),
  });
  const { wait, notices } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({ reason: 'provider_rejected', message: 'HTTP 400: bad request' });
  expect(notices).toMatchObject([{ kind: 'fallback', message: expect.stringContaining('refused') }]);
  await session.resume();
  expect((await untilPhase(session, 'idle')).lastText).toBe('changed my mind');
  expect(asked()).toEqual(['first', 'second', 'first']);
  await expectSound(stage, session);
});

test('both are down: one call of the activity asks both, and each attempt asks both again', async () => {
  const down: Fault = { fault: 'status', status: 503, headers: { 'retry-after-ms': '10' } };
  const { stage, session, asked } = await ask({
    first: (repeat) => (repeat < 2 ? down : { text: 'up', usage }),
    second: () => down,
  });
  expect((await untilPhase(session, 'idle', 'waiting')).lastText).toBe('up');
  expect(asked()).toEqual(['first', 'second', 'first', 'second', 'first']);
  expect((await session.budget()).spent).toMatchObject({ inputTokens: 10, outputTokens: 5, usd: 15 / 1e6 });
  await expectSound(stage, session);
});
