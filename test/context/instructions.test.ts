/** Instructions that are a function of the context. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { type DefinedAgent, defineAgent } from '../../src/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';

const Customer = z.object({ name: z.string(), locale: z.string().default('en') });

function agentOf(
  stage: Stage,
  instructions: (options: { context: z.infer<typeof Customer> }) => string | Promise<string>,
  budget: { tokens?: number } = {},
): DefinedAgent {
  return defineAgent({
    name: 'desk',
    model: stage.provider('m'),
    context: Customer,
    instructions,
    maxInstructionsBytes: 1_000,
    budget,
  });
}

function systemOf(stage: Stage, at: number): unknown {
  const messages = stage.model.requests[at]?.request.body['messages'] ?? [];
  return (messages as { role: string; content: unknown }[]).find(({ role }) => role === 'system')?.content;
}

test('instructions that are a function of the context are made for each model call, and recorded by digest', async () => {
  const stage = await openStage(() => ({ text: 'Hello.' }));
  let calls = 0;
  await stage.startWorker([
    agentOf(
      stage,
      ({ context }) => `Help ${context.name} in ${context.locale}, call ${++calls > 2 ? 2 : 1}.`,
    ),
  ]);
  const session = await stage.sessions.start('desk', {
    id: stage.id(),
    context: { name: 'Ann' },
    message: 'hi',
  });
  for (const turn of [1, 2, 3]) {
    await until(session, (view) => view.turn === turn && view.phase === 'idle');
    if (turn < 3) await session.send('again');
  }
  expect([0, 1, 2].map((at) => systemOf(stage, at))).toEqual([
    'Help Ann in en, call 1.',
    'Help Ann in en, call 1.',
    'Help Ann in en, call 2.',
  ]);
  const state = await expectFoldEqualsLive(stage.client, session);
  const digests = Object.values(state.instructedBy ?? {});
  expect(digests).toHaveLength(3);
  expect(new Set(digests).size).toBe(2);
  expect(JSON.stringify(state)).not.toContain('Help Ann');
});

test.each<[string, () => string | Promise<string>, string]>([
  [
    'throws',
    () => {
      throw new Error('no template');
    },
    'no template',
  ],
  ['returns nothing', () => ' ', 'must return a text'],
  ['returns too much', () => 'x'.repeat(1_001), 'it returned 1001 bytes, the limit is 1000'],
  ['never answers', () => new Promise<string>(() => {}), 'did not answer in time'],
])('when the instructions function %s, the session waits and goes on after resume', async (_, bad, why) => {
  const stage = await openStage(() => ({ text: 'Hello.' }));
  let mended = false;
  await stage.startWorker([agentOf(stage, () => (mended ? 'Help.' : bad()))]);
  const session = await stage.sessions.start('desk', {
    id: stage.id(),
    context: { name: 'Ann' },
    message: 'hi',
  });
  const { wait, budget } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({ reason: 'instructions_failed', next: { action: 'resume' } });
  expect(wait?.message).toContain(why);
  expect(budget).toMatchObject({ spent: { turns: 0, lostReplies: 0 }, reserved: { tokens: 0 } });
  expect(stage.model.requests).toHaveLength(0);
  mended = true;
  await session.resume();
  expect(await untilPhase(session, 'idle')).toMatchObject({ lastText: 'Hello.' });
  await expectFoldEqualsLive(stage.client, session);
});

test('a cap holds the longest text of the instructions function in reserve, whatever was measured', async () => {
  const stage = await openStage(() => ({ text: 'Hello.' }));
  await stage.startWorker([agentOf(stage, () => 'Help.', { tokens: 6_000 })]);
  const session = await stage.sessions.start('desk', {
    id: stage.id(),
    context: { name: 'Ann' },
    message: 'hi',
  });
  await untilPhase(session, 'idle');
  const { spent } = (await session.state()).budget;
  const used = spent.inputTokens + spent.outputTokens;
  await session.setBudget({ limits: { tokens: used + used + 4_096 + 900 } });
  await session.send('again');
  expect((await untilPhase(session, 'waiting')).wait).toMatchObject({ reason: 'budget' });
  expect(stage.model.requests).toHaveLength(1);
});
