import { expect, test } from 'vitest';
import * as z from 'zod';
import { canonicalJson } from '../../src/contract/json.ts';
import { foldHistory } from '../../src/history/index.ts';
import type { JsonObject } from '../../src/index.ts';
import { defineAgent, defineTool } from '../../src/index.ts';
import { readPages } from '../../src/temporal/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { decide } from '../support/decide.ts';
import { openStage, untilPhase } from '../support/stage.ts';

test('a refund over the limit waits for a person, happens once, and an equal one is answered from the record', async () => {
  const stage = await openStage(
    scriptedTurns([
      { text: 'I look it up.', toolCalls: [{ name: 'order', args: { id: '1001' } }] },
      { toolCalls: [{ name: 'refund', args: { chargeId: 'ch_1001', cents: 9_000 } }] },
      { toolCalls: [{ name: 'refund', args: { chargeId: 'ch_1001', cents: 9_000 } }] },
      { text: 'Refunded.' },
    ]),
  );
  const keys: string[] = [];
  const support = defineAgent({
    name: 'support',
    model: stage.provider('scripted'),
    instructions: 'Help with refunds.',
    tools: {
      order: defineTool({
        inputSchema: z.object({ id: z.string() }),
        effect: 'read',
        execute: ({ id }) => ({ id, cents: 9_000 }),
      }),
      refund: defineTool({
        inputSchema: z.object({ chargeId: z.string(), cents: z.number().int() }),
        needsApproval: ({ cents }) => cents > 5_000,
        execute: (_, { idempotencyKey }) => {
          keys.push(idempotencyKey);
          return { refunded: true };
        },
      }),
    },
  });
  await stage.startWorker([support]);
  const session = await stage.sessions.start('support', { id: stage.id(), message: 'Refund order 1001.' });

  const first = await untilPhase(session, 'approval');
  expect(first.pending).toMatchObject([{ callId: 'call_2_0', tool: 'refund', status: { kind: 'approval' } }]);
  expect(keys).toEqual([]);
  await decide(session, 'call_2_0', { decision: 'approve' }, { by: 'ada' });
  await untilPhase(session, 'approval');
  await decide(session, 'call_3_0', { decision: 'approve' }, { by: 'ada' });
  const done = await untilPhase(session, 'idle');

  expect(done.lastText).toBe('Refunded.');
  const { items: calls } = await session.calls();
  expect(calls.map(({ id, status, replayOf }) => [id, status.kind, replayOf])).toEqual([
    ['call_1_0', 'completed', null],
    ['call_2_0', 'completed', null],
    ['call_3_0', 'completed', 'call_2_0'],
  ]);
  expect(calls[2]?.result?.content).toEqual({
    notice:
      '[idempotent replay of call_2_0] refund was not executed: an equal call was made in answer to the same message, and this is its result.',
    result: { refunded: true },
  });
  expect(keys).toEqual([calls[1]?.idempotencyKey]);

  const live = await session.snapshot();
  const fold = await foldHistory(readPages(stage.client, { workflowId: session.id }), stage.client.options);
  expect(canonicalJson(fold.state as unknown as JsonObject)).toBe(
    canonicalJson(live as unknown as JsonObject),
  );
});
