/** What went wrong elsewhere while agents waited for people. `docs/comparison.md` says where. */
import { expect, test } from 'vitest';
import { decide } from '../support/decide.ts';
import { rejection } from '../support/rejection.ts';
import { calls, openWorld, PEN } from '../support/world.ts';

const refundOf = (tool: string, chargeId: string, cents: number): [string, object] => [
  tool,
  { ...PEN, chargeId, cents },
];

test('side effects repeated by an interrupt in a loop', async () => {
  // Each round refunds, and then asks a person: what came before the question must not come again with the answer.
  const round = (i: number): ReturnType<typeof calls> =>
    calls(refundOf('refundEachTime', 'ch_1001', 100 + i), refundOf('refundAsked', 'ch_1002', 100 + i));
  const world = await openWorld([round(0), round(1), round(2), { text: 'Done.' }], { ignoreKeys: true });
  let worker = await world.startWorker();
  const session = await world.begin();
  for (const turn of [1, 2, 3]) {
    await world.until(session, ({ phase, turn: now }) => phase === 'approval' && now === turn);
    // The next worker has nothing but the history: it goes through the whole loop again.
    await worker.stop();
    worker = await world.startWorker();
    await decide(session, `call_${turn}_1`, { decision: 'approve' });
  }
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log.map(({ dispatches }) => dispatches.map(({ outcome }) => outcome))).toEqual(
    Array.from({ length: 6 }, () => ['returned']),
  );
  expect((await world.control.refunds()).map(({ args }) => [args.chargeId, args.cents])).toEqual(
    [100, 101, 102].flatMap((cents) => [
      ['ch_1001', cents],
      ['ch_1002', cents],
    ]),
  );
  expect(world.model.requests).toHaveLength(4);
});

test('a finished sibling re-run when another is interrupted', async () => {
  const world = await openWorld(
    [
      calls(
        refundOf('refundEachTime', 'ch_1001', 100),
        refundOf('refundAsked', 'ch_1002', 100),
        refundOf('refundAsked', 'ch_1001', 200),
      ),
      { text: 'Done.' },
    ],
    { ignoreKeys: true },
  );
  let worker = await world.startWorker();
  const session = await world.begin('parallel');
  for (const [i, next] of ['call_1_1', 'call_1_2'].entries()) {
    await world.untilCall(session, `call_1_${i}`, 'completed');
    await worker.stop();
    worker = await world.startWorker();
    await decide(session, next, { decision: 'approve' });
  }
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log.map(({ dispatches }) => dispatches.map(({ no, outcome }) => [no, outcome]))).toEqual(
    Array.from({ length: 3 }, () => [[1, 'returned']]),
  );
  expect(await world.control.refunds()).toHaveLength(3);
});

test('parallel approvals that share an id', async () => {
  const world = await openWorld([
    calls(
      refundOf('refundAsked', 'ch_1001', 100),
      refundOf('refundAsked', 'ch_1001', 200),
      refundOf('refundAsked', 'ch_1001', 300),
    ),
    { text: 'Done.' },
  ]);
  await world.startWorker();
  const session = await world.begin('parallel');
  const { pending } = await world.until(session, ({ pending: all }) => all.length === 3);
  expect(pending.map(({ callId, args }) => [callId, args])).toEqual(
    [100, 200, 300].map((cents, i) => [`call_1_${i}`, { ...PEN, cents }]),
  );
  expect(new Set(pending.map(({ argsDigest }) => argsDigest)).size).toBe(3);
  // A decision on one is none on another, also when it is made with what was seen of the other.
  const [first, , third] = pending;
  expect(
    await rejection(
      session.decide({ callId: 'call_1_2', argsDigest: first?.argsDigest ?? '' }, { decision: 'approve' }),
    ),
  ).toMatchObject({ code: 'DIGEST_MISMATCH' });
  await session.decide({ callId: 'call_1_2', argsDigest: third?.argsDigest ?? '' }, { decision: 'approve' });
  await decide(session, 'call_1_0', { decision: 'reject', reason: 'not this one' });
  await decide(session, 'call_1_1', { decision: 'respond', output: 'done by hand' });
  await world.until(session, 'idle');

  await world.check(session);
  expect(await world.control.refunds()).toMatchObject([{ args: { cents: 300 } }]);
  const told = world.model.requests[1]?.request.toolResults.map(({ text }) => text);
  expect(told?.[0]).toContain('not this one');
  expect(told?.[1]).toBe('done by hand');
  expect(JSON.parse(told?.[2] ?? '')).toMatchObject({ cents: 300 });
});

test('an inbox action that silently does nothing', async () => {
  const world = await openWorld([
    calls(refundOf('refundAsked', 'ch_1001', 100), refundOf('refundAsked', 'ch_1002', 100)),
    { text: 'Left.' },
    calls(refundOf('refundAsked', 'ch_1001', 300)),
    { text: 'Done.' },
  ]);
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'approval');
  // Paused: the decision is taken, is seen, and has its effect when the session goes on.
  await session.pause();
  await world.until(session, 'paused');
  await decide(session, 'call_1_0', { decision: 'approve' }, { by: 'ada' });
  expect((await session.calls()).items[0]).toMatchObject({
    status: { kind: 'ready' },
    decision: { decision: 'approve', by: 'ada' },
  });
  await session.resume();
  await world.untilCall(session, 'call_1_0', 'completed');
  // The user has gone on: what was asked is not open any more, and a decision on it says so.
  await session.send({ text: 'Leave the other.', mode: 'interrupt' });
  await world.until(session, 'idle');
  expect(await rejection(decide(session, 'call_1_1', { decision: 'approve' }))).toMatchObject({
    code: 'CALL_NOT_PENDING',
    message: expect.stringContaining('call call_1_1 is skipped'),
  });
  // Nor does it fall on the call that is open now.
  await session.send('And this one.');
  await world.until(session, 'approval');
  expect(await rejection(decide(session, 'call_1_1', { decision: 'approve' }))).toMatchObject({
    code: 'CALL_NOT_PENDING',
  });
  expect((await session.approvals()).map(({ callId }) => callId)).toEqual(['call_3_0']);
  await world.check(session);
  await session.cancel();
  await session.result();
  expect(await rejection(decide(session, 'call_3_0', { decision: 'approve' }))).toMatchObject({
    code: 'SESSION_CLOSED',
  });
  expect(await world.control.refunds()).toMatchObject([{ args: { chargeId: 'ch_1001', cents: 100 } }]);
});
