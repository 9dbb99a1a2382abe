/** The experiments that the chapter on durable state asks of a harness. */
import { expect, test } from 'vitest';
import type { Script } from '../../src/testing/index.ts';
import { calls, openWorld } from '../support/world.ts';

const mail = { to: 'ada@example.com', subject: 'Your refund', body: 'It is on its way.' };

test('crash after turn 4 and resume', async () => {
  const order = (id: string) => calls(['order', { id }]);
  const world = await openWorld(
    [order('1001'), order('1002'), order('1003'), calls('refund', ['email', mail]), { text: 'All done.' }],
    { ignoreKeys: true },
  );
  const first = await world.startWorkerProcess({ breakAt: ['after refund'] });
  const session = await world.begin();
  // Turn 4 is on record, its refund has happened, and nobody has written that down.
  await first.reached('after refund');
  await first.crash();
  const asked = world.model.requests.length;
  await world.startWorker();
  await world.until(session, 'idle');

  const state = await world.check(session);
  // The transcript is whole, and the pending call was verified, not run again.
  expect(state.transcript.map(({ role }) => role)).toEqual([
    'user',
    ...Array.from({ length: 4 }, () => ['assistant', 'tool']).flat(),
    'assistant',
  ]);
  expect(state.calls.map(({ name, dispatches }) => [name, dispatches.map(({ outcome }) => outcome)])).toEqual(
    [
      ['order', ['returned']],
      ['order', ['returned']],
      ['order', ['returned']],
      ['refund', ['landed']],
      ['email', ['returned']],
    ],
  );
  // No turn was paid for twice, and what was spent is still on the books.
  expect(world.model.requests).toHaveLength(asked + 1);
  expect(state.budget.spent).toMatchObject({ turns: 5, toolCalls: 5 });
  expect(await world.control.refunds()).toHaveLength(1);
  expect(await world.control.emails()).toHaveLength(1);
});

test('the same e-mail twice in a session goes out once', async () => {
  // The model sends it whenever it is asked to; the user asks twice.
  const script: Script = ({ stepInTurn }) =>
    stepInTurn === 0 ? { toolCalls: [{ name: 'email', args: mail }] } : { text: 'Sent.' };
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess();
  const session = await world.begin();
  await world.until(session, 'idle');
  // Also when another process takes the second message.
  await first.crash();
  await world.startWorker();
  await session.send('Please send it again.');
  await world.until(session, ({ phase, turn }) => phase === 'idle' && turn === 4);

  const { calls: log } = await world.check(session);
  const [sent] = await world.control.emails();
  expect(log).toMatchObject([{ replayOf: null }, { replayOf: 'call_1_0' }]);
  expect(world.model.requests.at(-1)?.request.toolResults.at(-1)?.text).toMatch(
    new RegExp(`idempotent replay of call_1_0.* was not executed.*${sent?.id}`),
  );
  expect(await world.control.emails()).toMatchObject([{ args: mail, key: log[0]?.idempotencyKey }]);
});
