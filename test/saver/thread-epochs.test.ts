/** What a thread was before: deleted by another client, emptied and closed, ended from outside. */

import proto from '@temporalio/proto';
import { beforeAll, describe, expect, test } from 'vitest';
import { findRuns } from '../../src/checkpoints/runs.ts';
import { segmentId, THREAD_MEMO, threadWorkflowId } from '../../src/contract/thread.ts';
import { findExecution } from '../../src/temporal/executions.ts';
import type { ThreadInput } from '../../src/workflows/index.ts';
import { rejection } from '../support/rejection.ts';
import { heldSaver } from './support/held-saver.ts';
import { useThreads } from './support/threads.ts';

const threads = useThreads();
beforeAll(() => threads.startWorker());

const empty = (threadId: string, epoch: number): ThreadInput => ({
  threadId,
  epoch,
  segments: [],
  entries: [],
  garbage: { runs: [], contents: [] },
});

/** A thread that was deleted once and whose empty run has come to its end, as it does after a day. */
async function closed(): Promise<string> {
  const thread = threads.id();
  const taskQueue = `${threads.taskQueue}-closed`;
  await threads.client.workflow.start('checkpointThread', {
    workflowId: threadWorkflowId(thread),
    taskQueue,
    args: [empty(thread, 1)],
    memo: { [THREAD_MEMO]: 1 },
  });
  const { workflowService: service, options } = threads.client;
  const { namespace } = options;
  const { taskToken } = await threads.client.withDeadline(Date.now() + 20_000, () =>
    service.pollWorkflowTaskQueue({ namespace, taskQueue: { name: taskQueue }, identity: taskQueue }),
  );
  const { COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION: commandType } = proto.temporal.api.enums.v1.CommandType;
  const commands = [{ commandType, completeWorkflowExecutionCommandAttributes: {} }];
  await service.respondWorkflowTaskCompleted({ namespace, taskToken, commands });
  return thread;
}

describe('a thread that was deleted, and is used again when its empty run has closed', () => {
  test('is written by all clients', async () => {
    const thread = await closed();
    const first = await threads.newSaver().put(thread, { n: 1 });
    const second = await threads.newSaver().put(thread, { n: 2 });
    const third = await threads.newSaver().putStep(thread, 'key', 3);
    expect(await threads.newSaver().list(thread)).toEqual([second, first]);
    expect(await threads.newSaver().getStep(thread, 'key')).toEqual(third);
  });

  test('is so as well when a client of before has begun it, which noted its epoch nowhere', async () => {
    const thread = threads.id();
    await threads.client.workflow.start('checkpointThread', {
      workflowId: threadWorkflowId(thread),
      taskQueue: threads.taskQueue,
      args: [empty(thread, 1)],
    });
    const stored = await threads.newSaver().put(thread, { n: 1 });
    expect(await threads.newSaver().list(thread)).toEqual([stored]);
  });
});

describe('a deletion by another client', () => {
  test('refuses a put that was under way, and none that begins after it', async () => {
    const thread = threads.id();
    const { saver: mine, reached, release } = heldSaver(threads);
    const theirs = threads.newSaver();
    await theirs.put(thread, { n: 0 });
    const late = rejection(mine.put(thread, { n: 1 }));
    await reached;
    await theirs.delete(thread);
    release();
    expect(await late).toMatchObject({ code: 'CONFLICT' });
    expect(await theirs.list(thread)).toEqual([]);
    const stored = await mine.put(thread, { n: 2 });
    await theirs.delete(thread);
    // It has written there before, and did not hear of the deletion.
    const again = await mine.put(thread, { n: 3, text: 'x'.repeat(100_000) }, { id: stored.id });
    const step = await mine.putStep(thread, 'key', 4);
    expect(await theirs.list(thread)).toEqual([again]);
    expect(await theirs.listSteps(thread)).toEqual([step]);
  });
});

describe('a thread whose workflow was terminated from outside', () => {
  test('says so to who puts, is read, and deleted with all that it held; then it begins anew', async () => {
    const thread = threads.id();
    const saver = threads.newSaver();
    const large = await saver.put(thread, { text: 'x'.repeat(600_000) }, { id: 'large' });
    await Promise.all(Array.from({ length: 260 }, (_, n) => saver.put(thread, { n })));
    const workflowId = threadWorkflowId(thread);
    await expect
      .poll(async () => (await findRuns(threads.client, workflowId, 'checkpointThread')).length)
      .toBe(2);
    const last = await saver.putStep(thread, 'large', 'y'.repeat(100_000));
    const runs = await findRuns(threads.client, workflowId, 'checkpointThread');
    await expect.poll(async () => (await threads.contents(thread)).length).toBe(3);
    const segments = async (): Promise<number> =>
      (await Promise.all(runs.map((run) => findExecution(threads.client, segmentId(run))))).filter(Boolean)
        .length;
    expect(await segments()).toBe(1);
    await threads.client.workflow.getHandle(workflowId).terminate('by hand');

    const refusal = { code: 'CHECKPOINT_CORRUPTION', message: expect.stringMatching(/ended from outside/) };
    expect(await rejection(saver.put(thread, { n: 'new' }))).toMatchObject(refusal);
    expect(await rejection(threads.newSaver().putStep(thread, 'key', 1))).toMatchObject(refusal);
    expect(await threads.newSaver().get(thread, { checkpointId: 'large' })).toEqual(large);
    expect(await threads.newSaver().getStep(thread, 'large')).toEqual(last);

    await saver.delete(thread);
    expect(await saver.list(thread)).toEqual([]);
    expect(await segments()).toBe(0);
    await expect.poll(async () => (await threads.contents(thread)).length).toBe(0);
    const anew = await threads.newSaver().put(thread, { n: 'new' }, { id: 'large' });
    expect(await saver.list(thread)).toEqual([anew]);
  });
});
