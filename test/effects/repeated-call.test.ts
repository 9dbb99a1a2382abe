/** The model asks for the same thing again: what is one effect happens once, and what is meant twice happens twice. */
import { expect, test } from 'vitest';
import { calls, openWorld, PEN } from '../support/world.ts';

const done = { text: 'Done.' };

test('the same call in a later turn is answered from the record, in words that say so', async () => {
  const world = await openWorld([calls('refund'), calls('refund'), done], { ignoreKeys: true });
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  const [row] = await world.control.refunds();
  expect(log).toMatchObject([
    { status: { kind: 'completed' }, replayOf: null, dispatches: [{ no: 1 }] },
    { status: { kind: 'completed' }, replayOf: 'call_1_0', dispatches: [] },
  ]);
  const told = log[1]?.result?.content as { notice: string; result: { id: string } };
  expect(JSON.parse(world.model.requests.at(-1)?.request.toolResults[1]?.text ?? '')).toEqual(told);
  expect(told.notice).toMatch(
    /^\[idempotent replay of call_1_0\] refund was not executed: an equal call was made in answer to the same message/,
  );
  expect(told.result).toEqual(log[0]?.result?.content);
  expect(told.result.id).toBe(row?.id);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('the same call twice in one batch, one after the other: one effect', async () => {
  const world = await openWorld([calls('refund', 'refund'), done], { ignoreKeys: true });
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log.map(({ id, replayOf }) => [id, replayOf])).toEqual([
    ['call_1_0', null],
    ['call_1_1', 'call_1_0'],
  ]);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('the same call three times at once: two wait for the first, and are answered by it', async () => {
  const world = await openWorld([calls('refund', 'refund', 'refund'), done], { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  await world.startWorker();
  const session = await world.begin('parallel');
  await world.control.held();
  const { items } = await session.calls();
  expect(items.map(({ status }) => status)).toEqual([
    { kind: 'running' },
    { kind: 'deferred', to: 'call_1_0' },
    { kind: 'deferred', to: 'call_1_0' },
  ]);
  await world.control.release();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log.map(({ replayOf }) => replayOf)).toEqual([null, 'call_1_0', 'call_1_0']);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('the one that the others wait for fails for certain: the next makes the call', async () => {
  const tooMuch = { ...PEN, cents: 1_000_000 };
  const world = await openWorld([calls(['refund', tooMuch], ['refund', tooMuch]), done]);
  await world.startWorker();
  const session = await world.begin('parallel');
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log.map(({ status, dispatches }) => [status.kind, dispatches.length])).toEqual([
    ['failed', 1],
    ['failed', 1],
  ]);
});

test('a tool that says that each call counts runs each of them, with a key of its own', async () => {
  const world = await openWorld([calls('refundEachTime', 'refundEachTime'), done]);
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  const rows = await world.control.refunds();
  expect(rows).toMatchObject(log.map(({ idempotencyKey }) => ({ key: idempotencyKey })));
  expect(new Set(rows.map(({ key }) => key)).size).toBe(2);
});

test('the identity is the arguments that the tool names: another reason is the same refund, other cents are not', async () => {
  const world = await openWorld([
    calls('refundByCharge', ['refundByCharge', { ...PEN, reason: 'scratched' }]),
    calls(['refundByCharge', { ...PEN, cents: 100 }]),
    done,
  ]);
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  const [first, second, third] = log;
  expect(second?.idempotencyKey).toBe(first?.idempotencyKey);
  expect(second?.replayOf).toBe('call_1_0');
  expect(third?.idempotencyKey).not.toBe(first?.idempotencyKey);
  // Other arguments all the same: what people decide on tells them apart.
  expect(second?.argsDigest).not.toBe(first?.argsDigest);
  expect((await world.control.refunds()).map(({ args }) => args)).toEqual([PEN, { ...PEN, cents: 100 }]);
});

test('the identity is what the tool`s function says', async () => {
  const world = await openWorld([
    calls('refundByOrder', ['refundByOrder', { ...PEN, cents: 100 }]),
    calls(['refundByOrder', { ...PEN, chargeId: 'ch_1002' }]),
    done,
  ]);
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log.map(({ replayOf }) => replayOf)).toEqual([null, 'call_1_0', null]);
  expect((await world.control.refunds()).map(({ args }) => args.chargeId)).toEqual(['ch_1001', 'ch_1002']);
});

test('sessions do not share keys: the same refund in two sessions is two', async () => {
  const world = await openWorld([calls('refund'), done]);
  await world.startWorker();
  const sessions = [await world.begin(), await world.begin()];
  for (const session of sessions) {
    await world.until(session, 'idle');
    await world.check(session);
  }
  const keys = (await world.control.refunds()).map(({ key }) => key);
  expect(new Set(keys).size).toBe(2);
});
