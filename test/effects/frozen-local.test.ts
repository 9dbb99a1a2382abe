/** A workflow task that times out around a local call, in a worker that has taken it up late. */
import { optionalTsToMs } from '@temporalio/common/lib/time.js';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import { replay } from '../session/support/sound.ts';
import { calls, openWorld } from '../support/world.ts';

const { EventType } = proto.temporal.api.enums.v1;
const ENDS: readonly number[] = [
  EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
  EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
];

test.each([
  ['while nothing else comes', []],
  ['and a signal comes between', ['pause']],
])(
  'a local call holds its task beyond its end, %s: the session goes on as a replay would',
  async (_, signals) => {
    const world = await openWorld([
      calls(['peek', { id: 'a' }], ['order', { id: '1001' }], ['peek', { id: 'b' }]),
      { text: 'Seen.' },
    ]);
    const worker = await world.startWorkerProcess({ breakAt: ['after model', 'peek'] });
    const session = await world.begin();
    const handle = world.client.workflow.getHandle(session.id);
    await worker.reached('after model');
    await session.pause();
    worker.release('after model');
    await world.until(session, 'paused');

    // Temporal gives the task to a worker that takes it up only a second later, and counts from the start.
    worker.freeze();
    await handle.signal('resume');
    const pending = async () => (await handle.describe()).raw.pendingWorkflowTask;
    await expect
      .poll(async () => Date.now() - (optionalTsToMs((await pending())?.startedTime) ?? Infinity), {
        timeout: 30_000,
      })
      .toBeGreaterThan(1_200);
    worker.wake();
    await worker.reached('peek');
    for (const signal of signals) await handle.signal(signal);
    // It times out, or the SDK was in time to complete it for the local call to go on.
    await expect
      .poll(
        async () => {
          const { events = [] } = await handle.fetchHistory();
          const resumed = events?.findIndex(
            (event) => event.workflowExecutionSignaledEventAttributes?.signalName === 'resume',
          );
          return events?.slice(resumed).some(({ eventType }) => ENDS.includes(eventType ?? 0));
        },
        { timeout: 30_000 },
      )
      .toBe(true);
    worker.release('peek');
    // From here on nothing is held, however often it runs, until the worker is gone.
    const released = Promise.all(
      ['peek', 'after model'].map(async (point) => {
        for (;;) {
          await worker.reached(point);
          worker.release(point);
        }
      }),
    ).catch(() => {});

    await world.until(session, ({ phase }) => phase === (signals.length > 0 ? 'paused' : 'idle'));
    await world.check(session);
    await session.resume();
    await world.until(session, 'idle');
    await world.check(session);
    await replay(await handle.fetchHistory(), session.id);
    await worker.stop();
    await released;
  },
);
