/** Large steps that are overwritten while others read them, or whose write was sent twice. */
import { Client, type WorkflowClientInterceptor } from '@temporalio/client';
import { beforeAll, expect, test } from 'vitest';
import {
  contentId,
  type StepsResult,
  THREAD_QUERY,
  type ThreadPutStep,
  threadWorkflowId,
} from '../../src/contract/thread.ts';
import { type ContentRef, TemporalSaver } from '../../src/index.ts';
import { findExecution } from '../../src/temporal/executions.ts';
import { ThreadState } from '../../src/thread/thread-state.ts';
import { rejection } from '../support/rejection.ts';
import { useThreads } from './support/threads.ts';

const threads = useThreads();
beforeAll(() => threads.startWorker());

const large = (n: number): { n: number; text: string } => ({ n, text: 'x'.repeat(40_000) });

/** A saver that finds what it was told of overwritten, and gone, each of the first times that it asks the thread. */
function unluckySaver(thread: string, key: string, times: number): TemporalSaver {
  const writer = threads.newSaver();
  let n = 0;
  const query: NonNullable<WorkflowClientInterceptor['query']> = async (input, next) => {
    const told = await next(input);
    if (n >= times) return told;
    n += 1;
    const { content } = await held(thread, key);
    await writer.putStep(thread, key, large(n));
    await expect.poll(() => findExecution(threads.client, contentId(content.key, 0))).toBeNull();
    return told;
  };
  const client = new Client({
    connection: threads.client.connection,
    namespace: threads.client.options.namespace,
    interceptors: { workflow: [{ query }] },
  });
  return new TemporalSaver(client, { taskQueue: threads.taskQueue });
}

/** A large step, as its thread holds it. */
async function held(thread: string, key: string): Promise<{ content: ContentRef }> {
  const handle = threads.client.workflow.getHandle(threadWorkflowId(thread));
  const { entries } = await handle.query<StepsResult>(THREAD_QUERY.steps);
  const content = entries.find((entry) => entry.kind === 'step' && entry.key === key)?.content;
  return content === undefined ? expect.fail(`${key} is not there`) : { content };
}

test('steps that are overwritten again and again while they are read are found whole', async () => {
  const thread = threads.id();
  const writer = threads.newSaver();
  for (const key of ['a', 'b', 'c']) await writer.putStep(thread, key, large(0));
  const steps = await unluckySaver(thread, 'b', 4).listSteps(thread);
  expect(steps.map(({ key, value }) => [key, value])).toEqual([
    ['a', large(0)],
    ['b', large(4)],
    ['c', large(0)],
  ]);
  expect((await unluckySaver(thread, 'b', 3).getStep(thread, 'b'))?.value).toEqual(large(3));
});

test('steps of which parts were taken away are none any more, and say so', async () => {
  const thread = threads.id();
  const saver = threads.newSaver();
  for (const key of ['a', 'b', 'c']) await saver.putStep(thread, key, large(1));
  const lost = [await held(thread, 'a'), await held(thread, 'c')];
  const { namespace } = threads.client.options;
  for (const { content } of lost) {
    const workflowId = contentId(content.key, 0);
    const workflowExecution = { workflowId };
    await threads.client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
    await expect.poll(() => findExecution(threads.client, workflowId)).toBeNull();
  }
  const corruption = { code: 'CHECKPOINT_CORRUPTION' };
  expect(await rejection(saver.listSteps(thread))).toMatchObject(corruption);
  expect(await rejection(saver.getStep(thread, 'a'))).toMatchObject(corruption);
  expect((await saver.getStep(thread, 'b'))?.value).toEqual(large(1));
});

test('a step that is sent again to the next run, for its answer was lost, keeps what holds it', () => {
  const input = { threadId: 't', epoch: 0, segments: [], entries: [], garbage: { runs: [], contents: [] } };
  const content = (key: string): ContentRef => ({ key, parts: 1, digest: `digest of ${key}` });
  const step = (key: string): ThreadPutStep => ({ epoch: 0, key: 'k', value: null, content: content(key) });
  const first = new ThreadState(input);
  expect(first.putStep(step('one'), 'at 1')).toEqual({ updated_at: 'at 1' });
  const next = new ThreadState(first.carry());
  expect(next.putStep(step('one'), 'at 2')).toEqual({ updated_at: 'at 2' });
  expect(next.steps().entries).toMatchObject([{ key: 'k', content: content('one') }]);
  // Another value does replace it.
  expect(next.putStep(step('two'), 'at 3')).toEqual({ updated_at: 'at 3', replaced: content('one') });
  expect(next.putStep({ epoch: 0, key: 'k', value: 1 }, 'at 4')).toMatchObject({ replaced: content('two') });
});
