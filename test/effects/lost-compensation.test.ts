/** A worker dies while it undoes an effect: the effect is undone once, whenever it died. */
import { expect, test } from 'vitest';
import { TemporalSaver, undoPlanSince } from '../../src/index.ts';
import type { WorkerProcess } from '../../src/testing/index.ts';
import { calls, openWorld, PEN, type World } from '../support/world.ts';

/** Kills the worker at a breakpoint of the compensation. Resolves with the outcomes of its dispatches. */
async function killedAt(
  breakAt: string,
  fault: (world: World, worker: WorkerProcess) => Promise<void> = async (_, worker) => {
    await worker.reached(breakAt);
    await worker.crash();
  },
): Promise<(string | null)[]> {
  // The service ignores keys: a second request would be a second e-mail.
  const world = await openWorld([calls('refundUndone'), { text: 'Refunded.' }], { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: [breakAt] });
  const session = await world.begin();
  await world.until(session, 'idle');
  await session.cancel({ undo: { digest: (await session.undoPlan()).digest } });
  await fault(world, first);
  await world.startWorker();
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  const state = await world.check(session);
  const [refund, undone] = state.calls;
  expect(refund?.compensatedBy).toBe(undone?.id);
  expect(undone?.status).toEqual({ kind: 'completed' });
  expect(await world.control.emails()).toMatchObject([{ key: undone?.idempotencyKey }]);
  expect(await world.control.refunds()).toMatchObject([{ key: refund?.idempotencyKey }]);
  return undone?.dispatches.map(({ outcome }) => outcome) ?? [];
}

test('killed before the request of a compensation: verified absent, dispatched again', async () => {
  expect(await killedAt('compensation')).toEqual(['absent', 'returned']);
});

test('killed after a compensation took effect: verified landed, not dispatched again', async () => {
  expect(await killedAt('compensated')).toEqual(['landed']);
});

test('frozen before the request of a compensation while another worker takes over: its own request is stopped', async () => {
  const outcomes = await killedAt('compensation', async (world, worker) => {
    await worker.reached('compensation');
    worker.freeze();
    // It goes on at this line as soon as it wakes.
    worker.release('compensation');
    await world.startWorkerProcess();
    await expect.poll(async () => (await world.control.emails()).length, { timeout: 60_000 }).toBe(1);
    worker.wake();
  });
  expect(outcomes).toEqual(['absent', 'returned']);
});

test.each([
  ['compensation', ['absent', 'returned']],
  ['compensated', ['landed']],
])(
  'killed at %s while a rewind undoes an effect: it is undone once, and the session goes on',
  async (breakAt, outcomes) => {
    const world = await openWorld([calls('refundUndone'), { text: 'Refunded.' }, { text: 'Sorry.' }], {
      ignoreKeys: true,
    });
    const first = await world.startWorkerProcess({ breakAt: [breakAt] });
    const session = await world.begin();
    await world.until(session, 'idle');
    const all = await new TemporalSaver(world.client).list(session.id, { limit: 100 });
    const [now, then] = [all[0], all.findLast(({ metadata }) => metadata['phase'] === 'thinking')];
    if (then === undefined || now === undefined) throw new Error('no checkpoints');
    const undo = { digest: (await undoPlanSince(world.client, then, now)).digest };
    const from = { sessionId: session.id, checkpointId: then.id };
    const taken = await world.sessions.rewind(from, { by: 'ada', reason: 'not this one', undo });
    await first.reached(breakAt);
    await first.crash();
    await world.startWorker();
    await world.until(taken, 'idle');
    const { calls: log, carried } = await world.check(taken);
    const undone = log.find(({ compensates }) => compensates !== undefined);
    expect(undone?.dispatches.map(({ outcome }) => outcome)).toEqual(outcomes);
    expect(carried.filter(({ compensates }) => compensates === undefined)).toMatchObject([{ undone: true }]);
    expect(await world.control.emails()).toMatchObject([{ key: undone?.idempotencyKey }]);
    // Asked again, it refunds again: another effect.
    const keys = (await world.control.refunds()).map(({ key }) => key);
    expect(new Set(keys).size).toBe(2);
  },
);

test.each([
  ['after load', ['returned']],
  ['compensated', ['landed']],
])(
  'killed at %s while the effect of a session that has ended is undone: it is undone once, and the session ends',
  async (breakAt, outcomes) => {
    const world = await openWorld([calls('refundUndone'), { text: 'Refunded.' }], { ignoreKeys: true });
    const first = await world.startWorkerProcess({ breakAt: [breakAt] });
    const session = await world.begin();
    await world.until(session, 'idle');
    await session.cancel();
    await session.result();
    const { digest } = await session.undoPlan();
    const again = await world.sessions.undo(session.id, { undo: { digest } });
    await first.reached(breakAt);
    await first.crash();
    await world.startWorker();
    expect(await again.result()).toMatchObject({ status: 'cancelled' });
    const { calls: log } = await world.check(again);
    const undone = log.filter(({ compensates }) => compensates !== undefined);
    expect(undone.map(({ dispatches }) => dispatches.map(({ outcome }) => outcome))).toEqual([outcomes]);
    expect(await world.control.emails()).toMatchObject([{ key: undone[0]?.idempotencyKey }]);
  },
);

test('killed before and after the next portion of many effects of earlier runs is read: each is undone once', async () => {
  // The worker reads fifty at a time.
  const reasons = [...Array(52).keys()].map((n) => `item ${n}`);
  const refunds = reasons.map((reason) => ['refundUndone', { ...PEN, cents: 1, reason }] as [string, object]);
  const world = await openWorld([calls(...refunds), { text: 'Refunded.' }], { ignoreKeys: true });
  const before = await world.startWorkerProcess({ breakAt: ['before load'] });
  const session = await world.begin('rolling');
  await world.until(session, 'idle');
  const { digest, steps } = await session.undoPlan();
  expect(steps).toHaveLength(reasons.length);
  await session.cancel({ undo: { digest } });
  await before.reached('before load');
  before.release('before load');
  await before.reached('before load');
  await before.crash();
  expect(await world.control.emails()).toHaveLength(50);
  const after = await world.startWorkerProcess({ breakAt: ['after load'] });
  await after.reached('after load');
  await after.crash();
  await world.startWorkerProcess();
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  const state = await world.check(session);
  const undone = state.calls.filter(({ compensates }) => compensates !== undefined);
  expect(undone.map(({ status }) => status.kind)).toEqual(reasons.map(() => 'completed'));
  const mails = await world.control.emails();
  expect(mails.map(({ key }) => key)).toEqual(undone.map(({ idempotencyKey }) => idempotencyKey));
  const paid = await world.control.refunds();
  expect(mails.map(({ args }) => args.body)).toEqual(paid.map(({ id }) => id).toReversed());
});
