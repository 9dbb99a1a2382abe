/** A thread becomes full while it is written to: what it has is answered, and nothing of what it refuses stays behind. */

import { expect, test } from 'vitest';
import { jsonSize } from '../../src/contract/json.ts';
import { THREAD_LIMIT, threadWorkflowId } from '../../src/contract/thread.ts';
import { isPerdureError } from '../../src/index.ts';
import type { SegmentRef, ThreadInput } from '../../src/workflows/index.ts';
import { rejection } from '../support/rejection.ts';
import { useThreads } from './support/threads.ts';

const threads = useThreads();

/** Segments of long ago, of which there is room for one more. */
function almostAll(): SegmentRef[] {
  const found: SegmentRef[] = [];
  for (;;) {
    const run = `00000000-0000-4000-8000-${String(found.length).padStart(12, '0')}`;
    const marks = String(found.length).padStart(12, 'f').repeat(THREAD_LIMIT.sealEntries);
    const next = { run, marks, checkpoints: THREAD_LIMIT.sealEntries, steps: 0 };
    if (jsonSize([...found, next]) > THREAD_LIMIT.index) return found;
    found.push(next);
  }
}

/** Parts of large states that the server holds; this file has one thread. */
async function parts(): Promise<number> {
  let count = 0;
  const query = `WorkflowId STARTS_WITH 'perdure-content/' AND TaskQueue = '${threads.taskQueue}'`;
  for await (const _ of threads.client.workflow.list({ query })) count += 1;
  return count;
}

test('a thread that becomes full answers what it has, and keeps nothing of what it refuses', async () => {
  await threads.startWorker();
  const thread = threads.id();
  const input: ThreadInput = {
    threadId: thread,
    epoch: 0,
    segments: almostAll(),
    entries: [],
    garbage: { runs: [], contents: [] },
  };
  await threads.client.workflow.start('checkpointThread', {
    workflowId: threadWorkflowId(thread),
    taskQueue: threads.taskQueue,
    args: [input],
  });
  const saver = threads.newSaver();
  const large = 'x'.repeat(100_000);
  const text = (n: number): string => (n === 7 ? large : '');
  const put = (n: number): ReturnType<typeof saver.put> =>
    saver.put(thread, { n, text: text(n) }, { id: `id-${n}` });
  const stored = await Promise.all(Array.from({ length: THREAD_LIMIT.sealEntries }, (_, n) => put(n)));
  await expect.poll(parts).toBe(1);

  const refusal = { code: 'TOO_LARGE', message: expect.stringContaining(`Thread ${thread} is full`) };
  let late = 0;
  const more = (): Promise<unknown> => saver.put(thread, { late }, { id: `late-${late++}` });
  // It seals what it holds when it has answered; what comes meanwhile is taken.
  await expect
    .poll(() =>
      more().then(
        () => '',
        (error: unknown) => isPerdureError(error, 'TOO_LARGE'),
      ),
    )
    .toBe(true);
  expect(await rejection(more())).toMatchObject(refusal);
  expect(await rejection(saver.putStep(thread, 'key', 1))).toMatchObject(refusal);
  expect(await rejection(saver.put(thread, { text: large }, { id: 'new' }))).toMatchObject(refusal);
  await expect.poll(parts).toBe(1);

  expect(await put(3)).toEqual(stored[3]);
  expect(await threads.newSaver().put(thread, { n: 7, text: large }, { id: 'id-7' })).toEqual(stored[7]);
  const together = await Promise.allSettled([put(249), put(8), more(), put(7)]);
  expect(together).toMatchObject([
    { value: stored[249] },
    { value: stored[8] },
    { reason: refusal },
    { value: stored[7] },
  ]);
  const other = saver.put(thread, { n: 3, text: 'another' }, { id: 'id-3' });
  expect(await rejection(other)).toMatchObject({ code: 'CONFLICT' });
  expect(await saver.get(thread, { checkpointId: 'id-7' })).toEqual(stored[7]);
  expect(await parts()).toBe(1);
});
