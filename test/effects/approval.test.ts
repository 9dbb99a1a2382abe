/** A mutation that waits for a person: asked once, decided once, and run as decided. */
import { expect, test } from 'vitest';
import { canonicalJson } from '../../src/contract/json.ts';
import type { Session } from '../../src/index.ts';
import { decide } from '../support/decide.ts';
import { rolling } from '../support/effect-agents.ts';
import { rejection } from '../support/rejection.ts';
import { calls, openWorld, PEN, type World } from '../support/world.ts';

const script = [calls('refundAsked'), { text: 'I see.' }];

/** A session that waits for approval of its refund. */
async function waiting(): Promise<{ world: World; session: Session; digest: string }> {
  const world = await openWorld(script);
  await world.startWorker();
  const session = await world.begin();
  const { pending } = await world.until(session, 'approval');
  expect(pending).toMatchObject([{ callId: 'call_1_0', tool: 'refundAsked', args: PEN, decision: null }]);
  expect(await world.control.refunds()).toEqual([]);
  return { world, session, digest: pending[0]?.argsDigest ?? '' };
}

test('"no snapshot found" after a process change: it waits over the death of its worker, is not asked again, and runs once when approved', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess();
  const session = await world.begin();
  const asked = await world.until(session, 'approval');
  await first.crash();
  await world.startWorker();
  expect((await session.state()).pending).toEqual(asked.pending);
  await decide(session, 'call_1_0', { decision: 'approve' }, { by: 'ada' });
  await world.until(session, 'idle');

  const { calls: log } = await world.check(session);
  expect(log).toMatchObject([
    { status: { kind: 'completed' }, decision: { decision: 'approve', by: 'ada' } },
  ]);
  // The model was asked twice: for the call, and with its result.
  expect(world.model.requests).toHaveLength(2);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('its worker is killed between the approvals of two people: the first one stands, and the call runs once', async () => {
  const world = await openWorld([calls('refundByTwo'), { text: 'I see.' }], { ignoreKeys: true });
  const first = await world.startWorkerProcess();
  const session = await world.begin();
  await world.until(session, 'approval');
  const approve = (by: string) =>
    decide(session, 'call_1_0', { decision: 'approve' }, { by, verified: true });
  await approve('ann');
  await first.crash();
  await world.startWorker();
  expect((await session.state()).pending).toMatchObject([
    { callId: 'call_1_0', needs: { people: 2, given: [{ by: 'ann' }], notBy: ['ann'] } },
  ]);
  expect(await rejection(approve('ann'))).toMatchObject({ code: 'FORBIDDEN' });
  expect(await world.control.refunds()).toEqual([]);
  await approve('ben');
  await world.until(session, 'idle');
  await world.check(session);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('its worker dies while the session goes on in a new run, before and after the past is stored: the approval stands, and the call runs once', async () => {
  const world = await openWorld(script, { ignoreKeys: true, agents: [rolling] });
  const session = await world.begin('rolling');
  const { runId } = await world.client.workflow.getHandle(session.id).describe();
  for (const point of ['before storePast', 'after storePast']) {
    const worker = await world.startWorkerProcess({ breakAt: [point] });
    await worker.reached(point);
    await worker.crash();
  }
  await world.startWorker();
  const asked = await world.until(session, (view) => view.phase === 'approval' && view.runId !== runId);
  expect(asked.pending).toMatchObject([{ callId: 'call_1_0', args: PEN, decision: null }]);
  await decide(session, 'call_1_0', { decision: 'approve' }, { by: 'ada' });
  await world.until(session, 'idle');

  expect(await world.control.refunds()).toHaveLength(1);
  expect((await session.calls()).items).toMatchObject([
    { id: 'call_1_0', status: { kind: 'completed' }, decision: { decision: 'approve', by: 'ada' } },
  ]);
  expect((await session.transcript()).items.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
  ]);
  await world.check(session);
});

test('an approved tool asked again: its worker dies in the middle of it, the approval stands, and nobody is asked again', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['request'] });
  const session = await world.begin();
  await world.until(session, 'approval');
  await decide(session, 'call_1_0', { decision: 'approve' }, { by: 'ada' });
  await first.reached('request');
  await first.crash();
  await world.startWorker();
  await world.until(session, 'idle', 'approval');

  const { calls: log } = await world.check(session);
  expect(log[0]?.decision).toMatchObject({ decision: 'approve', by: 'ada' });
  expect(log[0]?.dispatches.map(({ outcome }) => outcome)).toEqual(['absent', 'returned']);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('an approval re-asked after resume: approved during a pause, it runs once on resume, and nobody is asked again', async () => {
  const { world, session } = await waiting();
  await session.pause({ by: 'ada' });
  await world.until(session, 'paused');
  await decide(session, 'call_1_0', { decision: 'approve' }, { by: 'ada' });
  const paused = await session.state();
  expect(paused).toMatchObject({ phase: 'paused', pending: [] });
  expect(await world.control.refunds()).toEqual([]);
  await session.resume({ by: 'bob' });
  await world.until(session, 'idle', 'approval');

  const { calls: log } = await world.check(session);
  expect(log).toMatchObject([
    { status: { kind: 'completed' }, decision: { decision: 'approve', by: 'ada' }, dispatches: [{ no: 1 }] },
  ]);
  expect(world.model.requests).toHaveLength(2);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('the first decision wins, and the second is told who decided what', async () => {
  const { world, session } = await waiting();
  const decisions = await Promise.allSettled([
    decide(session, 'call_1_0', { decision: 'approve' }, { by: 'ada' }),
    decide(session, 'call_1_0', { decision: 'reject' }, { by: 'grace' }),
  ]);
  expect(decisions.map(({ status }) => status).sort((a, b) => a.localeCompare(b))).toEqual([
    'fulfilled',
    'rejected',
  ]);
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  const decision = log[0]?.decision;
  const lost = decisions.find((each) => each.status === 'rejected');
  expect(lost?.reason).toMatchObject({ code: 'CALL_NOT_PENDING' });
  expect(await rejection(decide(session, 'call_1_0', { decision: 'approve' }))).toMatchObject({
    code: 'CALL_NOT_PENDING',
    message: expect.stringContaining(`${decision?.decision} by ${decision?.by}`),
  });
  expect(await world.control.refunds()).toHaveLength(decision?.decision === 'approve' ? 1 : 0);
});

test('rejected: not run, and the model is told why', async () => {
  const { world, session } = await waiting();
  await decide(session, 'call_1_0', { decision: 'reject', reason: 'ask for a photo first' }, { by: 'ada' });
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({ status: { kind: 'skipped' }, dispatches: [], result: { isError: true } });
  expect(world.model.requests[1]?.request.toolResults[0]?.text).toContain('ask for a photo first');
  expect(await world.control.refunds()).toEqual([]);
});

test('answered by a person in its place: not run, and their answer is its result', async () => {
  const { world, session } = await waiting();
  await decide(session, 'call_1_0', { decision: 'respond', output: { id: 'done by hand' } });
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    dispatches: [],
    result: { content: { id: 'done by hand' }, isError: false },
  });
  expect(world.model.requests[1]?.request.toolResults).toMatchObject([{ value: { id: 'done by hand' } }]);
  expect(await world.control.refunds()).toEqual([]);
});

test('edited: run with the new arguments, under a key of its own', async () => {
  const { world, session, digest } = await waiting();
  const before = (await session.calls()).items[0];
  await decide(session, 'call_1_0', { decision: 'edit', args: { ...PEN, cents: 100 } }, { by: 'ada' });
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]).toMatchObject({
    status: { kind: 'completed' },
    args: { cents: 100 },
    decision: { decision: 'edit' },
  });
  expect(log[0]?.argsDigest).not.toBe(digest);
  expect(log[0]?.idempotencyKey).not.toBe(before?.idempotencyKey);
  const rows = await world.control.refunds();
  expect(rows).toMatchObject([{ args: { ...PEN, cents: 100 }, key: log[0]?.idempotencyKey }]);
  // The model asked for 4,200 cents, and its own message says so: it is told what ran, and that a person changed it.
  const told = world.model.requests[1]?.request.toolResults[0]?.value;
  expect(told).toMatchObject({
    notice: `[edited by a person] refundAsked was called with other arguments than yours: ${canonicalJson({ ...PEN, cents: 100 })}. This is its result.`,
    result: { id: rows[0]?.id },
  });
});

test('edited into something that the tool does not take: refused, and still to be decided', async () => {
  const { world, session } = await waiting();
  const edit = decide(session, 'call_1_0', { decision: 'edit', args: { ...PEN, cents: -5 } });
  expect(await rejection(edit)).toMatchObject({
    code: 'INVALID_TOOL_INPUT',
    message: expect.stringContaining('cents'),
  });
  expect(await session.state()).toMatchObject({ phase: 'approval', pending: [{ callId: 'call_1_0' }] });
  await decide(session, 'call_1_0', { decision: 'edit', args: { ...PEN, cents: 5 } });
  await world.until(session, 'idle');
  await world.check(session);
  expect(await world.control.refunds()).toMatchObject([{ args: { cents: 5 } }]);
});

test('a decision on other arguments than the ones that are there is refused', async () => {
  const { world, session, digest } = await waiting();
  const stale = session.decide({ callId: 'call_1_0', argsDigest: '0'.repeat(64) }, { decision: 'approve' });
  expect(await rejection(stale)).toMatchObject({ code: 'DIGEST_MISMATCH' });
  expect(await rejection(decide(session, 'call_9_9', { decision: 'approve' }))).toMatchObject({
    code: 'UNKNOWN_CALL',
  });
  await session.decide({ callId: 'call_1_0', argsDigest: digest }, { decision: 'approve' });
  await world.until(session, 'idle');
  await world.check(session);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('nobody decides in time: not run, unless the tool says that silence is consent', async () => {
  const world = await openWorld([
    calls('refundExpiring'),
    calls(['refundConsented', { ...PEN, chargeId: 'ch_1002' }]),
    { text: 'I see.' },
  ]);
  await world.startWorker();
  const session = await world.begin();
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log).toMatchObject([
    { status: { kind: 'skipped' }, decision: { decision: 'expired', by: 'policy' }, dispatches: [] },
    { status: { kind: 'completed' }, decision: { decision: 'expired', by: 'policy' } },
  ]);
  expect(world.model.requests[1]?.request.toolResults[0]?.text).toContain('Nobody approved');
  expect(await world.control.refunds()).toMatchObject([{ args: { chargeId: 'ch_1002' } }]);
});
