/** Each reason for which a session does not answer has a code and words of its own. */
import { NativeConnection, Worker } from '@temporalio/worker';
import { expect, inject, onTestFinished, test } from 'vitest';
import { isUnanswered } from '../../src/contract/errors.ts';
import { judge, type Looked } from '../../src/temporal/unanswered.ts';
import { rejection } from '../support/rejection.ts';
import { openStage } from '../support/stage.ts';

const now = Date.now();
const RESTS: Looked = {
  what: 'session s',
  taskQueue: 'q',
  historyEvents: 20,
  task: null,
  tail: { problem: null, waiting: 0 },
  poller: { identity: '1@host', seenMs: now },
  askedMs: now - 15_000,
};
const taken = { started: true, sinceMs: now - 5_000, attempt: 3 };
const waits = { started: false, sinceMs: now - 5_000, attempt: 1 };
const gone = { identity: '1@host', seenMs: now - 20_000 };

test.each<[string, Partial<Looked>, string, RegExp]>([
  ['nobody has ever polled', { poller: undefined }, 'NO_WORKER', /No worker polls task queue q\. Start one/],
  ['the last worker is gone', { poller: gone }, 'NO_WORKER', /the last one, 1@host, was seen 20 s ago/],
  ['a task waits and nobody is there', { task: waits, poller: gone }, 'NO_WORKER', /task queue q/],
  ['a task waits and the workers are busy', { task: waits }, 'WORKER_BUSY', /has waited for 5 s/],
  ['a query waits and the workers are busy', {}, 'WORKER_BUSY', /none answered for session s in time/],
  [
    'a worker took the task and died',
    { task: taken },
    'WORKER_LOST',
    /5 s ago and has not answered, at attempt 3/,
  ],
  ['a replay is slow', { task: taken, historyEvents: 9_000 }, 'REPLAY_SLOW', /history of 9000 events/],
  ['a replay for a query is slow', { historyEvents: 9_000 }, 'REPLAY_SLOW', /9000 events/],
  [
    'the task fails',
    { task: taken, tail: { problem: 'nondeterminism', waiting: 3 } },
    'TASK_FAILING',
    /fails at attempt 3: nondeterminism/,
  ],
  [
    'too much came at once',
    { task: taken, tail: { problem: null, waiting: 300 } },
    'FLOODED',
    /More than 300 events/,
  ],
])('%s', (_, facts, code, words) => {
  const found = judge({ ...RESTS, ...facts });
  expect(found).toMatchObject({ code, message: expect.stringMatching(words) });
});

test('a session whose workflow task fails says so, with the failure, and not that there is no worker', async () => {
  const stage = await openStage(() => ({ text: 'never' }));
  const connection = await NativeConnection.connect({ address: inject('temporal').address });
  const worker = await Worker.create({
    connection,
    namespace: stage.client.options.namespace,
    taskQueue: stage.taskQueue,
    workflowsPath: new URL('../support/failing-workflow.ts', import.meta.url).pathname,
  });
  const run = worker.run();
  onTestFinished(async () => {
    worker.shutdown();
    await run;
    await connection.close();
  });
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'one' });
  await expect
    .poll(
      async () =>
        (await stage.client.workflow.getHandle(session.id).describe()).raw.pendingWorkflowTask?.attempt,
    )
    .toBeGreaterThan(1);
  const error = await rejection(session.send('two'));
  expect(isUnanswered(error)).toBe(true);
  expect(error).toMatchObject({ code: 'TASK_FAILING', message: expect.stringContaining('it cannot go on') });
}, 60_000);

test('a session without a worker says so, however large its last events are', async () => {
  const stage = await openStage(() => ({ text: 'never' }));
  const id = stage.id();
  // Together more than an answer of 4 MB, the most that Temporal's client accepts.
  for (const part of ['a', 'b', 'c', 'd', 'e'])
    await stage.sessions.start('echo', { id, message: part.repeat(950_000), onExisting: 'use' });
  const error = await rejection(stage.sessions.get(id).ping());
  expect(error).toMatchObject({ code: 'NO_WORKER', details: { waitingEvents: 7 } });
});
