/** Approvals without this package's client, and of a tool that cannot say whether it needs one. */
import { readFileSync } from 'node:fs';
import { WorkflowUpdateFailedError } from '@temporalio/client';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { decide } from '../support/decide.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** A session whose second turn is a mutation that may need approval; the first one looks. */
async function asking(
  needsApproval: () => boolean | Promise<boolean>,
): Promise<{ stage: Stage; session: Session; paid: string[] }> {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount < 2
      ? { toolCalls: [{ name: ['look', 'pay'][assistantCount] ?? '', args: {} }] }
      : { text: 'Done.' },
  );
  const paid: string[] = [];
  const inputSchema = z.object({});
  const tools = {
    look: defineTool({ inputSchema, effect: 'read', execute: () => 'seen' }),
    pay: defineTool({
      inputSchema,
      needsApproval,
      execute: (_, { callId }) => {
        paid.push(callId);
        return 'paid';
      },
    }),
  };
  await stage.startWorker([
    defineAgent({ name: 'payer', model: stage.provider('m'), instructions: 'Pay.', tools }),
  ]);
  const session = await stage.sessions.start('payer', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'approval', 'idle', 'waiting');
  return { stage, session, paid };
}

test('the JSON that the docs show approves a call, sent by a plain Temporal client as an update', async () => {
  const { stage, session, paid } = await asking(() => true);
  const page = readFileSync(new URL('../../docs/other-languages.md', import.meta.url), 'utf8');
  const [, input = ''] = /^\| `decide` \| `(\{.*\})` \|$/m.exec(page) ?? [];
  const [waiting] = await session.approvals();
  const decision = { ...(JSON.parse(input) as object), argsDigest: waiting?.argsDigest };
  expect(JSON.parse(input)).toMatchObject({ argsDigest: expect.any(String) });
  expect(paid).toEqual([]);

  const handle = stage.client.workflow.getHandle(session.id);
  await handle.executeUpdate('decide', { args: [decision] });
  await untilPhase(session, 'idle');
  expect(paid).toEqual(['call_2_0']);
  expect((await session.calls()).items[1]).toMatchObject({
    status: { kind: 'completed' },
    decision: { decision: 'approve', by: 'ada' },
  });
  // Sent once more it is refused, in words and with a code that any client shows.
  const error = await rejection(handle.executeUpdate('decide', { args: [decision] }));
  expect(error).toBeInstanceOf(WorkflowUpdateFailedError);
  expect((error as WorkflowUpdateFailedError).cause).toMatchObject({
    type: 'CALL_NOT_PENDING',
    message: expect.stringContaining('approve by ada'),
  });
  expect(paid).toHaveLength(1);
  await expectSound(stage, session);
});

test.each<[string, () => boolean | Promise<boolean>]>([
  [
    'throws',
    () => {
      throw new Error('no rule for this');
    },
  ],
  ['rejects', () => Promise.reject(new Error('the rules cannot be reached'))],
])('a needsApproval that %s asks a person, and runs nothing before', async (_, needsApproval) => {
  const { stage, session, paid } = await asking(needsApproval);
  expect(await session.state()).toMatchObject({
    phase: 'approval',
    pending: [{ callId: 'call_2_0', status: { kind: 'approval' }, decision: null }],
  });
  expect(paid).toEqual([]);
  await decide(session, 'call_2_0', { decision: 'approve' }, { by: 'ada' });
  await untilPhase(session, 'idle');
  expect(paid).toEqual(['call_2_0']);
  await expectSound(stage, session);
});

test('the time to decide stays as it was: after an edit that was refused, and an approval whose check failed', async () => {
  const stage = await openStage(
    scriptedTurns([{ toolCalls: [{ name: 'pay', args: { cents: 5 } }] }, { text: 'ok' }]),
  );
  let down = false;
  const pay = defineTool({
    inputSchema: z.object({ cents: z.number() }),
    needsApproval: true,
    approval: { expires: '1h', onExpiry: 'reject' },
    idempotency: ({ cents }) => {
      if (down) throw new Error('the index is down');
      return `pay ${cents}`;
    },
    execute: ({ cents }) => `paid ${cents}`,
  });
  await stage.startWorker([
    defineAgent({ name: 'payer', model: stage.provider('m'), instructions: 'Pay.', tools: { pay } }),
  ]);
  const session = await stage.sessions.start('payer', { id: stage.id(), message: 'go' });
  const { pending } = await untilPhase(session, 'approval');
  const { status } = pending[0] ?? {};
  const expiresAt = status?.kind === 'approval' ? status.expiresAt : null;
  expect(expiresAt).toEqual(expect.any(String));
  down = true;
  const refused = { code: 'INVALID_TOOL_INPUT', message: expect.stringContaining('the index is down') };
  const edit = { decision: 'edit', args: { cents: 6 } } as const;
  expect(await rejection(decide(session, 'call_1_0', edit))).toMatchObject(refused);
  expect(await rejection(decide(session, 'call_1_0', { decision: 'approve' }))).toMatchObject(refused);
  expect(await session.approvals()).toMatchObject([{ args: { cents: 5 }, status: { expiresAt } }]);
  down = false;
  await decide(session, 'call_1_0', { decision: 'approve' });
  await untilPhase(session, 'idle');
  expect((await session.calls()).items[0]?.result?.content).toBe('paid 5');
  await expectSound(stage, session);
});
