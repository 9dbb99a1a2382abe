/** Checkpoints whose metadata are large: many writers at once do not hold their thread up. */

import { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import { THREAD_LIMIT, threadWorkflowId } from '../../src/contract/thread.ts';
import { type Checkpoint, TemporalSaver } from '../../src/index.ts';
import type { ThreadInput } from '../../src/workflows/index.ts';
import { rejection } from '../support/rejection.ts';
import { useThreads } from './support/threads.ts';

const { UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED: ADMITTED } =
  proto.temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage;
/** The largest that a checkpoint may have. */
const LARGEST = 379_000;
/** A server takes ten updates of a workflow at once. */
const AT_ONCE = 9;

const threads = useThreads();

/** Metadata of so many bytes of JSON. */
const metadata = (size: number): { text: string } => ({ text: 'x'.repeat(size - '{"text":""}'.length) });

/** A saver whose update has an id that says whose it is. */
function namedSaver(updateId: string, taskQueue: string): TemporalSaver {
  const client = new Client({
    connection: threads.client.connection,
    namespace: threads.client.options.namespace,
    interceptors: {
      workflow: [
        {
          startUpdateWithStart: (input, next) =>
            next({ ...input, updateOptions: { ...input.updateOptions, updateId } }),
        },
      ],
    },
  });
  return new TemporalSaver(client, { taskQueue });
}

/** Whether the server holds an update of a thread for the next workflow task. */
async function isAdmitted(thread: string, updateId: string): Promise<boolean> {
  const workflowExecution = { workflowId: threadWorkflowId(thread) };
  const found = await threads.client
    .withDeadline(Date.now() + 5_000, () =>
      threads.client.workflowService.pollWorkflowExecutionUpdate({
        namespace: threads.client.options.namespace,
        updateRef: { workflowExecution, updateId },
        identity: updateId,
        waitPolicy: { lifecycleStage: ADMITTED },
      }),
    )
    .catch(() => null);
  return found?.stage === ADMITTED;
}

/** A thread that holds a checkpoint whose large metadata lie in the thread itself, and has no worker yet. */
async function begun(taskQueue: string): Promise<{ thread: string; held: Checkpoint }> {
  const thread = threads.id();
  const of = { id: 'held', created_at: new Date(0).toISOString(), parent_id: null, state: { n: -1 } };
  const held = { ...of, metadata: metadata(LARGEST) };
  const input: ThreadInput = {
    threadId: thread,
    epoch: 0,
    segments: [],
    entries: [{ kind: 'checkpoint', ...held }],
    garbage: { runs: [], contents: [] },
  };
  const workflowId = threadWorkflowId(thread);
  await threads.client.workflow.start('checkpointThread', { workflowId, taskQueue, args: [input] });
  return { thread, held: { ...held, thread_id: thread } };
}

test.each([
  ['the largest', LARGEST],
  ['the largest that the thread itself holds', THREAD_LIMIT.write - 1_000],
])(
  'puts of many clients, %s, in one task that seals what the thread holds, are all stored',
  async (_, size) => {
    const taskQueue = `${threads.taskQueue}-${size}`;
    const { thread, held } = await begun(taskQueue);
    const puts = Array.from({ length: AT_ONCE }, (_, n) =>
      namedSaver(`update-${n}`, taskQueue).put(thread, { n }, { id: `id-${n}`, metadata: metadata(size) }),
    );
    for (let n = 0; n < AT_ONCE; n++) await expect.poll(() => isAdmitted(thread, `update-${n}`)).toBe(true);
    await threads.startWorker(taskQueue);
    const stored = await Promise.all(puts);

    const saver = (): TemporalSaver => new TemporalSaver(threads.client, { taskQueue });
    const listed = await saver().list(thread, { limit: 20 });
    expect(listed.at(-1)).toEqual(held);
    expect(listed.slice(0, -1).toSorted((a, b) => Number(a.state['n']) - Number(b.state['n']))).toEqual(
      stored,
    );
    expect(await saver().get(thread, { checkpointId: 'id-3' })).toEqual(stored[3]);
    const again = { id: 'id-3', metadata: metadata(size) };
    expect(await saver().put(thread, { n: 3 }, again)).toEqual(stored[3]);
    const conflict = { code: 'CONFLICT' };
    expect(await rejection(saver().put(thread, { n: 4 }, again))).toMatchObject(conflict);
    const other = { ...again, metadata: { text: `y${again.metadata.text.slice(1)}` } };
    expect(await rejection(saver().put(thread, { n: 3 }, other))).toMatchObject(conflict);
    await saver().delete(thread);
    expect(await saver().list(thread)).toEqual([]);
  },
  120_000,
);
