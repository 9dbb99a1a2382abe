/** Many writes at once on one thread: few updates, one order, each with its own answer. */
import { beforeAll, describe, expect, test } from 'vitest';
import { THREAD_LIMIT, threadWorkflowId } from '../../src/contract/thread.ts';
import type { TemporalSaver } from '../../src/index.ts';
import { readEvents } from '../../src/temporal/index.ts';
import { rejection } from '../support/rejection.ts';
import { heldSaver } from './support/held-saver.ts';
import { useThreads } from './support/threads.ts';

const threads = useThreads();
let saver: TemporalSaver;
beforeAll(async () => {
  await threads.startWorker();
  saver = threads.newSaver();
});

/** The updates that a thread has taken, by name, in their order. */
async function updates(thread: string): Promise<string[]> {
  const names: string[] = [];
  for await (const event of readEvents(threads.client, { workflowId: threadWorkflowId(thread) })) {
    const accepted = event.workflowExecutionUpdateAcceptedEventAttributes;
    if (accepted) names.push(accepted.acceptedRequest?.input?.name ?? '');
  }
  return names;
}

describe('writes of one client that wait for one another', () => {
  test('go together: thirty puts at once take two updates, in the order of the calls for all readers', async () => {
    const thread = threads.id();
    const first = saver.put(thread, { n: -1 });
    // On its way: what comes now has to wait.
    await saver.put(`${thread}-beside`, {});
    const stored = await Promise.all([
      first,
      ...Array.from({ length: 30 }, (_, n) => saver.put(thread, { n }, { id: `id-${n}` })),
    ]);
    expect(stored.map(({ state }) => state['n'])).toEqual(Array.from({ length: 31 }, (_, n) => n - 1));
    for (const reader of [saver, threads.newSaver()])
      expect(await reader.list(thread, { limit: 50 })).toEqual(stored.toReversed());
    expect(await updates(thread)).toEqual(['put', 'writes']);
  });

  test('fail each for itself', async () => {
    const thread = threads.id();
    await saver.put(thread, { n: 'first' }, { id: 'taken' });
    const outcomes = await Promise.allSettled([
      saver.put(thread, { n: 1 }, { id: 'a' }),
      saver.put(thread, { n: 'other' }, { id: 'taken' }),
      saver.put(thread, { n: 2 }, { id: 'b', parentId: 'a' }),
      saver.put(thread, { n: 3 }, { parentId: 'nobody' }),
      saver.putStep(thread, 'step', { n: 4 }),
      saver.put(thread, { text: 'x'.repeat(1_100_000) }, { metadata: { text: 'x'.repeat(1_100_000) } }),
      saver.put(thread, { n: 'first' }, { id: 'taken' }),
      saver.put(thread, { text: 'y'.repeat(100_000) }, { id: 'taken' }),
    ]);
    expect(
      outcomes.map((one) => (one.status === 'rejected' ? (one.reason as { code: string }).code : 'stored')),
    ).toEqual([
      'stored',
      'CONFLICT',
      'stored',
      'INVALID_ARGUMENT',
      'stored',
      'TOO_LARGE',
      'stored',
      'CONFLICT',
    ]);
    expect((await saver.list(thread)).map(({ id }) => id)).toEqual(['b', 'a', 'taken']);
    expect((await saver.getStep(thread, 'step'))?.value).toEqual({ n: 4 });
    expect(await updates(thread)).toEqual(['put', 'writes']);
  });

  test('are split where one update could not carry them, and over rollovers', async () => {
    const thread = threads.id();
    // Each is kept in the thread itself; together they are more than a run may hold.
    const stored = await Promise.all(
      Array.from({ length: 70 }, (_, n) => saver.put(thread, { n, padding: 'x'.repeat(30_000) })),
    );
    expect(70 * 30_000).toBeGreaterThan(THREAD_LIMIT.held);
    expect(await threads.newSaver().list(thread, { limit: 200 })).toEqual(stored.toReversed());
  });

  test('stay on their side of a deletion', async () => {
    const thread = threads.id();
    await saver.put(thread, { n: 0 });
    const before = saver.put(thread, { n: 1 });
    const deleted = saver.delete(thread);
    const after = saver.put(thread, { n: 2 });
    await Promise.all([before, deleted, after]);
    expect((await saver.list(thread)).map(({ state }) => state['n'])).toEqual([2]);
  });

  test('are refused together when another client has deleted the thread meanwhile', async () => {
    const thread = threads.id();
    await saver.put(thread, { n: 0 });
    const { saver: late, reached, release } = heldSaver(threads);
    const refusals = [1, 2, 3].map(
      async (n) => ((await rejection(late.put(thread, { n }))) as { code: string }).code,
    );
    await reached;
    await threads.newSaver().delete(thread);
    release();
    expect(await Promise.all(refusals)).toEqual(['CONFLICT', 'CONFLICT', 'CONFLICT']);
    expect(await saver.list(thread)).toEqual([]);
  });
});

test('writers of several clients at once: nothing is lost, and all readers see one order', async () => {
  const thread = threads.id();
  await Promise.all(
    Array.from({ length: 3 }, (_, writer) => {
      const own = threads.newSaver();
      return Promise.all(Array.from({ length: 20 }, (__, n) => own.put(thread, { writer, n })));
    }),
  );
  const order = await saver.list(thread, { limit: 100 });
  expect(order).toHaveLength(60);
  expect(await threads.newSaver().list(thread, { limit: 100 })).toEqual(order);
  for (let writer = 0; writer < 3; writer++) {
    const own = order.filter(({ state }) => state['writer'] === writer).map(({ state }) => state['n']);
    expect(own).toEqual(Array.from({ length: 20 }, (_, n) => 19 - n));
  }
});

describe('steps that are large', () => {
  test('are stored in parts, read whole, replaced with what held them, and deleted with their thread', async () => {
    const thread = threads.id();
    const value = { text: '"\\é😀\u0000'.repeat(250_000), list: [1, null] };
    const stored = await saver.putStep(thread, 'large', value);
    await saver.putStep(thread, 'small', 1);
    const fresh = threads.newSaver();
    expect(await fresh.getStep(thread, 'large')).toEqual(stored);
    expect((await fresh.listSteps(thread)).map(({ key, value: held }) => [key, held])).toEqual([
      ['large', value],
      ['small', 1],
    ]);
    await expect.poll(async () => (await threads.contents(thread)).length).toBeGreaterThan(2);

    await saver.putStep(thread, 'large', ['y'.repeat(40_000)]);
    await expect.poll(async () => (await threads.contents(thread)).length).toBe(1);
    await saver.putStep(thread, 'large', ['y'.repeat(40_000)]);
    expect((await fresh.getStep(thread, 'large'))?.value).toEqual(['y'.repeat(40_000)]);
    await saver.delete(thread);
    await expect.poll(async () => (await threads.contents(thread)).length).toBe(0);
    expect(await fresh.listSteps(thread)).toEqual([]);
  });

  test('are refused over the limit before they are sent', async () => {
    const thread = threads.id();
    expect(await rejection(saver.putStep(thread, 'key', 'x'.repeat(20_000_000)))).toMatchObject({
      code: 'TOO_LARGE',
    });
    expect(await saver.listSteps(thread)).toEqual([]);
  });
});
