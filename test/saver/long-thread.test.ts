/** A thread of 10,000 checkpoints: written in bursts, as many at once as wait for the last batch. */
import { beforeAll, describe, expect, test } from 'vitest';
import { findRuns } from '../../src/checkpoints/runs.ts';
import { threadWorkflowId } from '../../src/contract/thread.ts';
import type { Checkpoint, TemporalSaver } from '../../src/index.ts';
import { findExecution } from '../../src/temporal/executions.ts';
import { rejection } from '../support/rejection.ts';
import { useThreads } from './support/threads.ts';

const COUNT = 10_000;
const AT_ONCE = 500;
const PAGE = 1_000;

const threads = useThreads();

const idOf = (n: number): string => `id-${String(n).padStart(5, '0')}`;
/** The checkpoint of a number; a child of the one before it every tenth time. */
const put = (saver: TemporalSaver, thread: string, n: number): Promise<Checkpoint> =>
  saver.put(
    thread,
    { n },
    n % 10 === 9 ? { id: idOf(n), parentId: idOf(n - 1), metadata: { n } } : { id: idOf(n), metadata: { n } },
  );

describe('a thread of ten thousand checkpoints', () => {
  let thread: string;
  const stored: Checkpoint[] = [];

  beforeAll(async () => {
    await threads.startWorker();
    thread = threads.id();
    const saver = threads.newSaver();
    for (let from = 0; from < COUNT; from += AT_ONCE) {
      const burst = Array.from({ length: AT_ONCE }, (_, n) => put(saver, thread, from + n));
      stored.push(...(await Promise.all(burst)));
    }
    // Two hundred updates, one after the other: half a minute on two shared cores.
  }, 300_000);

  test('is listed by a fresh saver newest first, each once, in pages that join', async () => {
    const saver = threads.newSaver();
    const found: Checkpoint[] = [];
    for (;;) {
      const before = found.at(-1)?.id;
      const page = await saver.list(thread, before === undefined ? { limit: PAGE } : { limit: PAGE, before });
      found.push(...page);
      if (page.length < PAGE) break;
    }
    expect(stored).toHaveLength(COUNT);
    expect(found).toHaveLength(COUNT);
    expect(new Set(found.map(({ id }) => id)).size).toBe(COUNT);
    expect(found).toEqual(stored.toReversed());
    expect(found[0]?.id).toBe(idOf(COUNT - 1));
    expect(found.at(-1)?.id).toBe(idOf(0));
  });

  test('is read in its middle and at its ends without what lies between', async () => {
    const middle = COUNT / 2;
    expect(await threads.newSaver().list(thread, { before: idOf(middle), limit: 100 })).toEqual(
      stored.slice(middle - 100, middle).reverse(),
    );
    expect(await threads.newSaver().list(thread, { before: idOf(3), limit: 100 })).toEqual(
      stored.slice(0, 3).reverse(),
    );
    expect(await threads.newSaver().list(thread, { before: idOf(0), limit: 100 })).toEqual([]);
    expect(await threads.newSaver().get(thread)).toEqual(stored.at(-1));
    for (const n of [0, 1, middle, COUNT - 1])
      expect(await threads.newSaver().get(thread, { checkpointId: idOf(n) })).toEqual(stored[n]);
    expect(await threads.newSaver().get(thread, { checkpointId: idOf(COUNT) })).toBeNull();
  });

  test('stores a put once that is repeated after all the others, and refuses another content', async () => {
    const saver = threads.newSaver();
    for (const n of [0, 9, COUNT / 2]) expect(await put(saver, thread, n)).toEqual(stored[n]);
    expect(await rejection(saver.put(thread, { n: -1 }, { id: idOf(0) }))).toMatchObject({
      code: 'CONFLICT',
    });
    expect((await threads.newSaver().list(thread, { limit: 2 })).map(({ id }) => id)).toEqual([
      idOf(COUNT - 1),
      idOf(COUNT - 2),
    ]);
    // A checkpoint of any age is a parent.
    const child = await saver.put(thread, { n: COUNT }, { id: idOf(COUNT), parentId: idOf(0) });
    expect(await threads.newSaver().list(thread, { limit: 2 })).toEqual([child, stored.at(-1)]);
  });

  test('is gone with all that held it when it is deleted, and may begin anew', async () => {
    const saver = threads.newSaver();
    await saver.delete(thread);
    expect(await saver.list(thread)).toEqual([]);
    for (const id of [idOf(0), idOf(COUNT)])
      expect(await threads.newSaver().get(thread, { checkpointId: id })).toBeNull();
    const present = await findExecution(threads.client, threadWorkflowId(thread));
    await expect
      .poll(async () => findRuns(threads.client, threadWorkflowId(thread), 'checkpointThread'), {
        timeout: 60_000,
      })
      .toEqual([present?.runId]);
    const first = await saver.put(thread, { n: 'new' }, { id: idOf(0) });
    expect(await threads.newSaver().list(thread)).toEqual([first]);
  });
});
