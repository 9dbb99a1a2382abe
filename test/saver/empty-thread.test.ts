/** A thread that was emptied: what is asked of it then does not fill it, and it takes what is put. */
import { beforeAll, expect, test } from 'vitest';
import { THREAD_UPDATE, threadWorkflowId } from '../../src/contract/thread.ts';
import { TemporalSaver } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { useThreads } from './support/threads.ts';

const threads = useThreads();
beforeAll(() => threads.startWorker());

async function describe(thread: string): Promise<{ runId: string; historyLength: number }> {
  return threads.client.workflow.getHandle(threadWorkflowId(thread)).describe();
}

/** A thread that has held something. */
async function emptied(): Promise<string> {
  const thread = threads.id();
  const saver = threads.newSaver();
  await saver.put(thread, { n: 1 }, { id: 'first' });
  const { runId } = await describe(thread);
  await saver.delete(thread);
  await expect.poll(async () => (await describe(thread)).runId).not.toBe(runId);
  return thread;
}

/** Updates that are recorded and change nothing. */
async function recordUpdates(thread: string, count: number): Promise<void> {
  const handle = threads.client.workflow.getHandle(threadWorkflowId(thread));
  for (let n = 0; n < count; n++)
    await handle.executeUpdate(THREAD_UPDATE.swept, { args: [{ runs: [], contents: [] }] });
}

/** Four megabytes are what Temporal suggests to go on at, with the next task. */
async function fill(thread: string): Promise<void> {
  const handle = threads.client.workflow.getHandle(threadWorkflowId(thread));
  for (let n = 0; n < 5; n++) await handle.signal('noise', 'x'.repeat(900_000));
}

test('a deletion of nothing is recorded nowhere', async () => {
  const thread = await emptied();
  await threads.newSaver().delete(thread);
  const before = await describe(thread);
  for (let n = 0; n < 30; n++) await threads.newSaver().delete(thread);
  expect(await describe(thread)).toMatchObject({
    runId: before.runId,
    historyLength: before.historyLength,
  });
  const stored = await threads.newSaver().put(thread, { n: 2 }, { id: 'first' });
  expect(await threads.newSaver().list(thread)).toEqual([stored]);
});

test('an empty thread goes on in another run before it is full, and takes what is put then', async () => {
  const thread = await emptied();
  await recordUpdates(thread, 3);
  const { runId } = await describe(thread);
  await fill(thread);
  // A task does not count the signals that the server held back while the one before it ran: a later one does.
  const touched = async (): Promise<string> => {
    await recordUpdates(thread, 1);
    return (await describe(thread)).runId;
  };
  await expect.poll(touched).not.toBe(runId);
  const stored = await threads.newSaver().put(thread, { n: 2 });
  expect(await threads.newSaver().list(thread)).toEqual([stored]);
});

test('without a worker, its errors speak of a thread and say the next step', async () => {
  const saver = new TemporalSaver(threads.client, {
    taskQueue: `${threads.taskQueue}-nobody`,
    timeoutMs: 500,
  });
  const thread = threads.id();
  const error = {
    code: 'NO_WORKER',
    message: expect.stringMatching(new RegExp(`thread ${thread}.*perdure worker`, 's')),
  };
  expect(await rejection(saver.put(thread, { n: 1 }, { id: 'first' }))).toMatchObject({
    ...error,
    details: { id: 'first' },
  });
  for (const call of [
    () => saver.put(thread, {}),
    () => saver.putStep(thread, 'key', 1),
    () => saver.get(thread),
    () => saver.list(thread),
    () => saver.listSteps(thread),
    () => saver.delete(thread),
  ]) {
    const refusal = await rejection(call());
    expect(refusal).toMatchObject(error);
    expect(String(refusal)).not.toMatch(/of session|for session|Session|perdure (show|ls|start|cancel)/);
  }
});
