/** A tool as the AI SDK defines it, and nothing more: nothing is known of its effect, so nothing is assumed. */
import { tool } from 'ai';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, type Session } from '../../src/index.ts';
import { resolve } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';

interface Given {
  toolCallId: string;
  messages: unknown;
  aborted: boolean | undefined;
  key: unknown;
}

/** A session whose model calls a plain tool, and the same again; what each run of it was given. */
async function paying(outcome: (to: string) => unknown): Promise<{
  stage: Stage;
  session: Session;
  given: Given[];
}> {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount < 2 ? { toolCalls: [{ name: 'pay', args: { to: 'ann' } }] } : { text: 'Done.' },
  );
  const given: Given[] = [];
  const pay = tool({
    description: 'Pay somebody',
    inputSchema: z.object({ to: z.string(), cents: z.number().default(5) }),
    execute: async ({ to, cents }, { toolCallId, messages, abortSignal, ...rest }) => {
      const key = (rest as { idempotencyKey?: unknown }).idempotencyKey;
      given.push({ toolCallId, messages, aborted: abortSignal?.aborted, key });
      return { to, cents, outcome: outcome(to) };
    },
  });
  await stage.startWorker([
    defineAgent({ name: 'plain', model: stage.provider('m'), instructions: 'Pay.', tools: { pay } }),
  ]);
  const session = await stage.sessions.start('plain', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'idle', 'waiting', 'unknown_effect');
  return { stage, session, given };
}

test('a plain AI SDK tool runs as a mutation: once, also when the model asks again', async () => {
  const { stage, session, given } = await paying(() => 'paid');
  const { items } = await session.calls();
  expect(items).toMatchObject([
    {
      effect: 'mutate',
      scope: 'message',
      status: { kind: 'completed' },
      result: { content: { to: 'ann', cents: 5, outcome: 'paid' }, isError: false },
    },
    { status: { kind: 'completed' }, replayOf: 'call_1_0', dispatches: [] },
  ]);
  expect(given).toEqual([
    { toolCallId: 'call_1_0', messages: [], aborted: false, key: items[0]?.idempotencyKey },
  ]);
  // The model was offered what the AI SDK would offer.
  expect(stage.model.requests[0]?.request.tools).toMatchObject([
    { name: 'pay', description: 'Pay somebody', parameters: { properties: { to: { type: 'string' } } } },
  ]);
  await expectFoldEqualsLive(stage.client, session);
});

test('one that throws may have paid: nobody can look, so a person says what became of it', async () => {
  const { stage, session, given } = await paying(() => {
    throw new Error('the connection was lost');
  });
  expect((await session.state()).pending).toMatchObject([
    { callId: 'call_1_0', tool: 'pay', status: { kind: 'unknown' } },
  ]);
  expect(given).toHaveLength(1);
  await resolve(session, 'call_1_0', { outcome: 'landed', output: 'paid after all' }, { by: 'ada' });
  expect(await untilPhase(session, 'idle', 'unknown_effect')).toMatchObject({
    phase: 'idle',
    lastText: 'Done.',
  });
  expect(stage.model.requests[1]?.request.toolResults.map(({ text }) => text)).toEqual(['paid after all']);
  // It was not run again, neither for the answer nor for the model's second request.
  expect(given).toHaveLength(1);
  await expectFoldEqualsLive(stage.client, session);
});
