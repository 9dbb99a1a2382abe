/** A tool as the AI SDK defines it, and nothing more: nothing is known of its effect, so nothing is assumed. */
import { Runtime } from '@temporalio/worker';
import { tool } from 'ai';
import { expect, onTestFinished, test, vi } from 'vitest';
import * as z from 'zod';
import { defineAgent, type Session } from '../../src/index.ts';
import { resolve } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';

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

test('each call of a plain AI SDK tool is a mutation of its own: it is never answered from an old record', async () => {
  const { stage, session, given } = await paying(() => 'paid');
  const { items } = await session.calls();
  expect(items).toMatchObject([
    {
      effect: 'mutate',
      scope: 'call',
      status: { kind: 'completed' },
      result: { content: { to: 'ann', cents: 5, outcome: 'paid' }, isError: false },
    },
    { status: { kind: 'completed' }, replayOf: null, dispatches: [{ no: 1 }] },
  ]);
  expect(given).toEqual(
    items.map(({ id, idempotencyKey: key }) => ({ toolCallId: id, messages: [], aborted: false, key })),
  );
  expect(new Set(given.map(({ key }) => key)).size).toBe(2);
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
  // The model's second call is an effect of its own, and nobody can look what became of that one either.
  await until(session, ({ pending }) => pending[0]?.callId === 'call_2_0');
  await resolve(session, 'call_2_0', { outcome: 'failed' }, { by: 'ada' });
  expect(await untilPhase(session, 'idle')).toMatchObject({ lastText: 'Done.' });
  expect(stage.model.requests[1]?.request.toolResults.map(({ text }) => text)).toEqual(['paid after all']);
  // Neither call was run again.
  expect(given).toHaveLength(2);
  await expectFoldEqualsLive(stage.client, session);
});

test('the worker warns at its start of a plain tool, with the line to write; an annotated one is what it is said to be', async () => {
  const stage = await openStage(({ stepInTurn }) =>
    stepInTurn === 0 ? { toolCalls: [{ name: 'searchOrders', args: { of: 'ann' } }] } : { text: 'Done.' },
  );
  const warn = vi.spyOn(Runtime.instance().logger, 'warn');
  onTestFinished(() => warn.mockRestore());
  const searchOrders = tool({
    description: 'Finds orders',
    inputSchema: z.object({ of: z.string() }),
    execute: ({ of }) => ({ orders: [1, 2, 3], of }),
    toModelOutput: ({ output }) => ({
      type: 'text',
      value: `${output.orders.length} orders of ${output.of}`,
    }),
  });
  const options = {
    model: stage.provider('m'),
    instructions: 'Look.',
    tools: { searchOrders, other: searchOrders },
  };
  await stage.startWorker([
    defineAgent({ ...options, name: 'careful', effects: { searchOrders: 'read' } }),
    defineAgent({ ...options, name: 'plain' }),
  ]);
  const warnings = warn.mock.calls
    .map(([message]) => message)
    .filter((message) => message.startsWith('agent '));
  expect(warnings).toEqual([
    expect.stringContaining('agent careful: the effect of other is not declared.'),
    expect.stringContaining("Add effects: { searchOrders: 'read', other: 'read' }"),
  ]);

  const session = await stage.sessions.start('careful', { id: stage.id(), message: 'look' });
  await untilPhase(session, 'idle');
  const [call] = (await session.calls()).items;
  expect(call).toMatchObject({
    effect: 'read',
    result: {
      content: { orders: [1, 2, 3], of: 'ann' },
      modelOutput: { type: 'text', value: '3 orders of ann' },
    },
  });
  // The model sees what `toModelOutput` returned, and sees the same in each later prompt.
  await session.send('again');
  await untilPhase(session, 'idle');
  for (const { request } of stage.model.requests.slice(1))
    expect(request.toolResults[0]?.text).toBe('3 orders of ann');
  await expectFoldEqualsLive(stage.client, session);
});
