/** A call that is safe to repeat, and whose worker dies or which was not attempted: Temporal runs it again, and the session asks nobody. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, NotAttemptedError, type Session } from '../../src/index.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { calls, openWorld } from '../support/world.ts';

test('an idempotent call is run again with the same key, in the same dispatch: a service that honours it has one row', async () => {
  const world = await openWorld([calls('note'), { text: 'Noted.' }]);
  const first = await world.startWorkerProcess({ breakAt: ['after note'] });
  const session = await world.begin();
  await first.reached('after note');
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    dispatches: [{ no: 1, outcome: 'returned' }],
  });
  expect(await world.control.refunds()).toMatchObject([{ key: log[0]?.idempotencyKey }]);
});

test('an idempotent call may happen twice where the service ignores the key: that is what `idempotent` says of it', async () => {
  const world = await openWorld([calls('note'), { text: 'Noted.' }], { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['after note'] });
  const session = await world.begin();
  await first.reached('after note');
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  const key = log[0]?.idempotencyKey;
  expect(await world.control.refunds()).toMatchObject([{ key }, { key }]);
});

test('workers that die before an idempotent call begins: only the first of them uses up an attempt', async () => {
  const world = await openWorld([calls('note'), { text: 'Noted.' }]);
  const session = await world.begin();
  for (let death = 1; death <= 4; death++) {
    const worker = await world.startWorkerProcess({ breakAt: ['before note'] });
    await worker.reached('before note');
    await worker.crash();
  }
  await world.startWorker();
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({ status: { kind: 'completed' }, dispatches: [{ outcome: 'returned' }] });
  expect(await world.control.refunds()).toHaveLength(1);
}, 120_000);

test('workers that die after an idempotent call has begun: it ends after its attempts, and nobody can tell', async () => {
  const world = await openWorld([calls('note'), { text: 'Not noted.' }], { ignoreKeys: true });
  const session = await world.begin();
  for (let death = 1; death <= 3; death++) {
    const worker = await world.startWorkerProcess({ breakAt: ['after note'] });
    await worker.reached('after note');
    await worker.crash();
  }
  await world.startWorker();
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'failed', certain: false },
    dispatches: [{ outcome: 'unknown' }],
  });
  expect(log[0]?.result?.content).toBe(
    'note gave no result: WorkersLost: its worker was lost in each of its 3 attempts',
  );
  expect(await world.control.refunds()).toHaveLength(3);
}, 120_000);

test('a read that says that it was not attempted is attempted again by Temporal, as often as its tool allows', async () => {
  const attempts: number[] = [];
  const { stage, session } = await askToLook((attempt) => {
    attempts.push(attempt);
    throw new NotAttemptedError('the line is busy', { retryable: true });
  });
  await untilPhase(session, 'idle');
  expect(attempts).toEqual([1, 2]);
  const [call] = (await session.calls()).items;
  expect(call).toMatchObject({ result: { isError: true }, dispatches: [{ no: 1 }] });
  expect(call?.result?.content).toContain('the line is busy');
  await expectFoldEqualsLive(stage.client, session);
});

test('a read that is attempted again and then succeeds is an ordinary one', async () => {
  const { session } = await askToLook((attempt) => {
    if (attempt === 1) throw new NotAttemptedError('the line is busy', { retryable: true });
    return 'seen';
  });
  await untilPhase(session, 'idle');
  expect((await session.calls()).items[0]?.result).toEqual({ content: 'seen', isError: false });
});

/** A session whose agent looks once, with a tool that may be attempted twice. */
async function askToLook(look: (attempt: number) => string): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0 ? { toolCalls: [{ name: 'look', args: {} }] } : { text: 'Done.' },
  );
  const tool = defineTool({
    inputSchema: z.object({}),
    effect: 'read',
    maxAttempts: 2,
    execute: (_, { attempt }) => look(attempt),
  });
  await stage.startWorker([
    defineAgent({
      name: 'looker',
      model: stage.provider('scripted'),
      instructions: 'Look.',
      tools: { look: tool },
    }),
  ]);
  return { stage, session: await stage.sessions.start('looker', { id: stage.id(), message: 'Go.' }) };
}
