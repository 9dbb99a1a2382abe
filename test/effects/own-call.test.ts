/** Whose call it is: a worker asks the server, unless it has issued the call itself a moment ago. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import type { WorkerInterceptors } from '@temporalio/worker';
import { expect, onTestFinished, test, vi } from 'vitest';
import { IssuedCalls } from '../../src/activities/index.ts';
import type { ToolInput } from '../../src/contract/activities.ts';
import { ACTIVITY } from '../../src/contract/names.ts';
import { createWorker } from '../../src/index.ts';
import { readEvents } from '../../src/temporal/index.ts';
import { scriptedAgents } from '../../src/testing/harness/scripted-agents.ts';
import { effects } from '../support/effect-agents.ts';
import { openWorld } from '../support/world.ts';

/** Longer than a call counts as just issued. */
const LATE_MS = 150;

interface Told {
  activityId: string;
  /** How often the server was asked whose it is. */
  asked: number;
  /** How often a history was read: what runs before this one have done. */
  read: number;
  held: boolean;
}

/** Tells of each call that a worker runs; those of which `hold` says so are late. */
function observer(told: Told[], hold: (nth: number) => boolean): WorkerInterceptors {
  return {
    activity: [
      ({ info }) => ({
        inbound: {
          execute: async (input, next) => {
            if (info.activityType !== ACTIVITY.tool) return next(input);
            const { workflowService } = Context.current().client;
            const asks = vi.spyOn(workflowService, 'recordActivityTaskHeartbeat');
            const reads = vi.spyOn(workflowService, 'getWorkflowExecutionHistory');
            const held = hold(told.length);
            if (held) await sleep(LATE_MS);
            try {
              return await next(input);
            } finally {
              const [asked = 0, read = 0] = [asks, reads].map(({ mock }) => mock.calls.length);
              told.push({ activityId: info.activityId, asked, read, held });
              asks.mockRestore();
              reads.mockRestore();
            }
          },
        },
      }),
    ],
  };
}

/** A model that sends another letter each turn, until enough is known. */
function letters(enough: () => boolean): Parameters<typeof openWorld>[0] {
  return ({ assistantCount: n }) =>
    n < 60 && !enough()
      ? { toolCalls: [{ name: 'email', args: { to: 'ann@example.com', subject: `No. ${n}`, body: '' } }] }
      : { text: 'All sent.' };
}

test('a call that its worker has just issued is run at once; one that comes to it late is asked for first', async () => {
  const told: Told[] = [];
  const world = await openWorld(
    letters(() => told.some(({ asked }) => asked === 0) && told.some(({ held }) => held)),
  );
  await world.startWorker({ interceptors: observer(told, (nth) => nth % 2 === 1) });
  const session = await world.begin();
  await world.until(session, 'idle');
  await world.check(session);
  expect(told.filter(({ held }) => held)).not.toHaveLength(0);
  for (const { held, asked } of told) if (held) expect(asked).toBe(1);
  expect(told.filter(({ asked }) => asked === 0)).not.toHaveLength(0);
  // The run is the first, and the worker that issues its calls knows it.
  for (const { read } of told) expect(read).toBe(0);
});

test('a call that another worker has issued is asked for, however soon it comes', async () => {
  const told: Told[] = [];
  const world = await openWorld(letters(() => told.length >= 5));
  // Alone with the session at first, so that its workflow tasks stay with it.
  const issuer = await createWorker({
    // Says what the agent is, within its workflow task.
    agents: scriptedAgents([effects], world.model.url),
    address: { address: world.address },
    taskQueue: world.taskQueue,
    identity: 'issuer',
    enableNonLocalActivities: false,
  });
  const issuing = issuer.run();
  onTestFinished(async () => {
    issuer.shutdown();
    await issuing;
  });
  const session = await world.begin();
  await world.until(session, () => true);
  await world.startWorker({ identity: 'runner', interceptors: observer(told, () => false) });
  await world.until(session, 'idle');
  await world.check(session);

  const tasks = new Map<number, string>();
  const issuers = new Map<string, string>();
  for await (const event of readEvents(world.client, { workflowId: session.id })) {
    const { workflowTaskCompletedEventAttributes: task, activityTaskScheduledEventAttributes: call } = event;
    if (task) tasks.set(Number(event.eventId), task.identity ?? '');
    if (call) issuers.set(call.activityId ?? '', tasks.get(Number(call.workflowTaskCompletedEventId)) ?? '');
  }
  const byOther = told.filter(({ activityId }) => issuers.get(activityId) === 'issuer');
  expect(byOther).not.toHaveLength(0);
  for (const { asked } of byOther) expect(asked).toBe(1);
  expect(byOther[0]?.read).toBe(1);
});

test('a workflow task that was carried out twice has two marks, and only the call with the own one is the own', () => {
  const issued = new IssuedCalls();
  const run = { runId: 'run', firstExecutionRunId: 'run' };
  const call = (issueMark?: number): ToolInput => ({ issueMark }) as ToolInput;
  issued.note(run, { activityId: '3', mark: 17 });
  expect(issued.take('run', '3', call(18))).toBeUndefined();
  // A call has one chance to be the own: what was another's is not looked at again.
  expect(issued.take('run', '3', call(17))).toBeUndefined();

  issued.note(run, { activityId: '3', mark: 17 });
  expect(issued.take('other run', '3', call(17))).toBeUndefined();
  expect(issued.take('run', '4', call(17))).toBeUndefined();
  expect(issued.take('run', '3', call(17))).toMatchObject({
    at: { wall: expect.closeTo(Date.now(), -5) },
    firstRun: true,
  });

  issued.note({ ...run, firstExecutionRunId: 'run before the reset' }, { activityId: '3', mark: 17 });
  expect(issued.take('run', '3', call(17))).toMatchObject({ firstRun: false });
});
