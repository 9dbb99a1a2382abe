/** A person resets the workflow with Temporal's own means: what was given out or done is not done again. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Session } from '../../src/index.ts';
import { type HistoryEvent, readEvents } from '../../src/temporal/index.ts';
import { calls, openWorld, type World } from '../support/world.ts';

/** Resets the session to its `nth` completed workflow task, as `temporal workflow reset` does. */
async function reset(world: World, session: Session, nth: number): Promise<void> {
  const ids: HistoryEvent['eventId'][] = [];
  for await (const event of readEvents(world.client, { workflowId: session.id })) {
    if (event.workflowTaskCompletedEventAttributes) ids.push(event.eventId);
  }
  await world.client.workflowService.resetWorkflowExecution({
    namespace: world.namespace,
    workflowExecution: { workflowId: session.id },
    reason: 'test',
    requestId: randomUUID(),
    workflowTaskFinishEventId: ids.at(nth) ?? null,
  });
}

test('reset past the dispatch of a mutation under way: the copied dispatch is refused and verified, one refund', async () => {
  const world = await openWorld([calls('refund'), { text: 'Refunded.' }], { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  await world.startWorker();
  const session = await world.begin();
  await world.control.held();
  // One more task, so that there is one after the dispatch to reset to.
  await session.send('Are you there?');
  const before = await session.snapshot();
  await reset(world, session, -1);
  await world.until(session, (view) => view.runId !== before.runId && view.phase === 'idle');

  const state = await world.check(session);
  expect(state.calls).toMatchObject([
    { status: { kind: 'completed' }, dispatches: [{ no: 1, outcome: 'landed' }] },
  ]);
  expect(state.calls[0]?.dispatches[0]?.reason).toContain(`refused: dispatched by run ${before.runId}`);
  expect(await world.control.refunds()).toMatchObject([{ key: state.calls[0]?.idempotencyKey }]);
});

test('reset to before the dispatch of a mutation under way: the new run finds it in the old, and verifies', async () => {
  const world = await openWorld([calls('refund'), { text: 'Refunded.' }], { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  await world.startWorker();
  const session = await world.begin();
  await world.control.held();
  const before = await session.snapshot();
  // The last completed task is the one that dispatched it: the new run does that task again.
  await reset(world, session, -1);
  await world.until(session, (view) => view.runId !== before.runId && view.phase === 'idle');

  const state = await world.check(session);
  expect(state.calls).toMatchObject([
    {
      status: { kind: 'completed' },
      dispatches: [{ outcome: 'landed', reason: expect.stringContaining('by a run that was reset') }],
    },
  ]);
  expect(await world.control.refunds()).toMatchObject([{ key: before.calls[0]?.idempotencyKey }]);
});

test('reset to before a refund that is done, and again: its record in the first run answers', async () => {
  const world = await openWorld([calls('refund'), { text: 'Refunded.' }], { ignoreKeys: true });
  await world.startWorker();
  const session = await world.begin();
  const runs = [(await world.until(session, 'idle')).runId];
  const [row] = await world.control.refunds();
  for (let times = 0; times < 2; times++) {
    // To the task that asks the model for the first time.
    await reset(world, session, 0);
    const { runId } = await world.until(
      session,
      (view) => !runs.includes(view.runId) && view.phase === 'idle',
    );
    runs.push(runId);
    const { calls: log } = await world.check(session);
    expect(log).toMatchObject([{ status: { kind: 'completed' }, result: { content: { id: row?.id } } }]);
  }
  expect(world.model.requests).toHaveLength(6);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('reset to after a refund that is done: its record is kept, and equal calls are answered from it', async () => {
  const world = await openWorld([calls('refund'), calls('refund'), { text: 'Refunded.' }], {
    ignoreKeys: true,
  });
  await world.startWorker();
  const session = await world.begin();
  const { runId } = await world.until(session, 'idle');
  await reset(world, session, -2);
  await world.until(session, (view) => view.runId !== runId && view.phase === 'idle');

  const state = await world.check(session);
  expect(state.calls.map(({ status, replayOf }) => [status.kind, replayOf])).toEqual([
    ['completed', null],
    ['completed', 'call_1_0'],
  ]);
  expect(await world.control.refunds()).toHaveLength(1);
});
