import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** A session that waits for the approval of a call. */
async function waiting(): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(({ lastUserText, toolResults }) =>
    lastUserText === 'pay' && toolResults.length === 0
      ? { toolCalls: [{ name: 'pay', args: {} }] }
      : { text: `heard: ${lastUserText}` },
  );
  const pay = defineTool({
    inputSchema: z.object({}),
    effect: 'idempotent',
    needsApproval: true,
    execute: async () => 'paid',
  });
  const model = stage.provider('m');
  await stage.startWorker([defineAgent({ name: 'clerk', model, instructions: 'Pay.', tools: { pay } })]);
  const session = await stage.sessions.start('clerk', {
    id: stage.id(),
    message: { text: 'pay', id: 'first' },
  });
  await untilPhase(session, 'approval');
  return { stage, session };
}

test('messages that wait are seen, changed and withdrawn, and the model gets what is left', async () => {
  const { stage, session } = await waiting();
  await session.send({ text: 'and hurry', id: 'hurry', by: 'ann' });
  await session.send({ text: 'to Bob', id: 'to', by: 'ann' });
  await session.send({ text: 'thanks', id: 'thanks' });
  expect(await session.queue()).toMatchObject([
    { id: 'hurry', text: 'and hurry', by: 'ann' },
    { id: 'to', text: 'to Bob' },
    { id: 'thanks', text: 'thanks' },
  ]);
  expect(await session.withdraw('hurry', { by: 'eve' })).toMatchObject({ phase: 'approval', queued: 2 });
  await session.withdraw('hurry');
  await session.editMessage('to', { text: 'to Eve', by: 'eve' });
  expect(await session.queue()).toMatchObject([
    { id: 'to', text: 'to Eve', by: 'ann', edited: { by: 'eve' } },
    { id: 'thanks' },
  ]);
  expect((await session.state()).notices.at(-1)?.message).toBe(
    'eve withdrew message hurry before the model saw it',
  );
  // A repeated request does not bring it back.
  expect(await rejection(session.send({ text: 'and hurry', id: 'hurry' }))).toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('was withdrawn by eve'),
  });
  await stage.client.workflow.getHandle(session.id).signal('send', { text: 'and hurry', id: 'hurry' });
  const [call] = await session.approvals();
  if (call === undefined) throw new Error('nothing waits');
  await session.decide(call, { decision: 'approve' });
  expect(await untilPhase(session, 'idle')).toMatchObject({ lastText: 'heard: thanks', queued: 0 });
  const { items } = await session.transcript();
  const said = items.filter(({ role }) => role === 'user').map(({ id, blocks }) => [id, blocks[0]]);
  expect(said).toEqual([
    ['first', { kind: 'text', text: 'pay' }],
    ['to', { kind: 'text', text: 'to Eve' }],
    ['thanks', { kind: 'text', text: 'thanks' }],
  ]);
  await expectSound(stage, session);
});

test('a message that the session has taken, or never had, is refused with words', async () => {
  const { session } = await waiting();
  expect(await rejection(session.withdraw('first'))).toMatchObject({
    code: 'MESSAGE_NOT_QUEUED',
    message: expect.stringContaining(
      'the session has taken it. To stop its turn, send another with mode interrupt',
    ),
  });
  await session.send({ text: 'wait', id: 'wait' });
  expect(await rejection(session.editMessage('wiat', 'go'))).toMatchObject({
    code: 'MESSAGE_NOT_QUEUED',
    message: expect.stringContaining('has no message wiat. Queued: wait'),
  });
  await session.withdraw('wait');
  expect(await rejection(session.editMessage('wait', 'go'))).toMatchObject({ code: 'CONFLICT' });
  expect(await rejection(session.editMessage('wait', ''))).toMatchObject({ code: 'INVALID_ARGUMENT' });
});
