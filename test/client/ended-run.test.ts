import { Client, Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, Sessions, TemporalSaver } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';

async function waiting(start: { workflowRunTimeout?: '3s' } = {}) {
  const stage = await openStage(scriptedTurns([{ toolCalls: [{ name: 'pay', args: {} }] }]));
  const pay = defineTool({
    description: 'Pay',
    inputSchema: z.object({}),
    effect: 'mutate',
    needsApproval: true,
    execute: () => null,
  });
  await stage.startWorker([
    defineAgent({ name: 'payer', model: stage.provider('m'), instructions: 'Pay.', tools: { pay } }),
  ]);
  const id = stage.id();
  await stage.client.workflow.start('agentSession', {
    workflowId: id,
    taskQueue: stage.taskQueue,
    args: [{ agent: 'payer', message: { text: 'pay' } }],
    ...start,
  });
  const session = stage.sessions.get(id);
  await untilPhase(session, 'approval');
  return { stage, session };
}

test('the view of a session that was terminated says so, with the reason, and nothing of it waits', async () => {
  const { stage, session } = await waiting();
  expect(await session.state()).toMatchObject({ status: { kind: 'active' }, phase: 'approval' });
  await stage.client.workflow.getHandle(session.id).terminate('by hand');
  const view = await session.state();
  expect(view).toMatchObject({
    status: { kind: 'ended', run: 'terminated', reason: 'by hand', at: expect.any(String) },
    phase: 'closed',
    pending: [],
  });
  expect(await session.approvals()).toEqual([]);
  expect(await session.read()).toMatchObject({ run: 'terminated', view });
});

test('the view of a session that Temporal has timed out says so', async () => {
  const { session } = await waiting({ workflowRunTimeout: '3s' });
  await expect
    .poll(async () => (await session.state()).status)
    .toMatchObject({ kind: 'ended', run: 'timed_out', reason: '' });
});

test('a wait for the result goes on when the session is rewound', async () => {
  const { stage, session } = await waiting();
  const result = session.result();
  const checkpointId = (await new TemporalSaver(stage.client).get(session.id))?.id ?? '';
  const { runId } = await session.state();
  await stage.sessions.rewind({ sessionId: session.id, checkpointId }, { by: 'ada', reason: 'again' });
  await until(session, (view) => view.runId !== runId && view.phase === 'approval');
  await session.cancel();
  expect(await result).toMatchObject({ status: 'cancelled' });
});

test('a wait for the result goes on when somebody resets the session in Temporal', async () => {
  const { stage, session } = await waiting();
  const result = session.result();
  const { id } = session;
  const { runId } = await session.state();
  const { events } = await stage.client.workflow.getHandle(id, runId).fetchHistory();
  const task = events?.findLast((event) => event.workflowTaskCompletedEventAttributes);
  await stage.client.workflowService.resetWorkflowExecution({
    namespace: stage.client.options.namespace,
    workflowExecution: { workflowId: id, runId },
    reason: 'test',
    requestId: crypto.randomUUID(),
    workflowTaskFinishEventId: task?.eventId ?? null,
  });
  await until(session, (view) => view.runId !== runId && view.phase === 'approval');
  await session.cancel();
  expect(await result).toMatchObject({ status: 'cancelled' });
});

test('a wait for the result of a session that is terminated or timed out ends with the reason', async () => {
  const { stage, session } = await waiting();
  const result = rejection(session.result());
  await stage.client.workflow.getHandle(session.id).terminate('by hand');
  expect(await result).toMatchObject({
    code: 'SESSION_CLOSED',
    message: expect.stringContaining('was terminated: by hand'),
  });
  const { session: late } = await waiting({ workflowRunTimeout: '3s' });
  expect(await rejection(late.result())).toMatchObject({
    code: 'SESSION_CLOSED',
    message: expect.stringContaining('has timed out'),
  });
});

test('a wait for the result ends with the signal of its caller', async () => {
  const { stage, session } = await waiting();
  const stop = new AbortController();
  const polls = vi.spyOn(stage.client.workflowService, 'getWorkflowExecutionHistory');
  const result = rejection(stage.client.withAbortSignal(stop.signal, () => session.result()));
  await expect.poll(() => polls.mock.calls.length).toBe(1);
  stop.abort();
  expect(await result).toBeInstanceOf(Error);
});

test('a wait for the result ends when the server has dropped the notice of the end', async () => {
  const { stage, session } = await waiting();
  const connection = await Connection.connect({ address: inject('temporal').address });
  onTestFinished(() => connection.close());
  const client = new Client({ connection, namespace: stage.client.options.namespace });
  // A server drops notices only under load. A poll that gets none stays open for up to 20 s.
  const polls = vi
    .spyOn(connection.workflowService, 'getWorkflowExecutionHistory')
    .mockImplementationOnce(() => new Promise(() => {}));
  const result = new Sessions(client, { taskQueue: stage.taskQueue }).get(session.id).result();
  await expect.poll(() => polls.mock.calls.length).toBe(1);
  await session.cancel();
  expect(await result).toMatchObject({ status: 'cancelled' });
  expect(polls).toHaveBeenCalledTimes(2);
});
