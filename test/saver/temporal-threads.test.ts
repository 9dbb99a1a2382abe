import { beforeAll, describe, expect, test } from 'vitest';
import { findRuns } from '../../src/checkpoints/runs.ts';
import { segmentId, threadWorkflowId } from '../../src/contract/thread.ts';
import { type Checkpoint, type PerdureError, Sessions, TemporalSaver } from '../../src/index.ts';
import { findExecution, runsUpTo, untilGone } from '../../src/temporal/executions.ts';
import { rejection } from '../support/rejection.ts';
import { useThreads } from './support/threads.ts';

const threads = useThreads();
let saver: TemporalSaver;
beforeAll(async () => {
  await threads.startWorker();
  saver = threads.newSaver();
});

/** Stores `count` checkpoints, as fast as they go. */
async function fill(thread: string, count: number, size = 0): Promise<Checkpoint[]> {
  const padding = 'x'.repeat(size);
  return Promise.all(
    Array.from({ length: count }, (_, n) => saver.put(thread, { n, padding }, { id: `id-${n}` })),
  );
}

/** All of a thread, page by page. */
async function pages(thread: string, limit: number): Promise<Checkpoint[]> {
  const found: Checkpoint[] = [];
  for (;;) {
    const before = found.at(-1)?.id;
    const page = await threads.newSaver().list(thread, before === undefined ? { limit } : { limit, before });
    found.push(...page);
    if (page.length < limit) return found;
  }
}

/** The runs of a thread but the present, all of which have closed. */
async function closedRuns(thread: string): Promise<string[]> {
  const present = await findExecution(threads.client, threadWorkflowId(thread));
  const runs = await findRuns(threads.client, threadWorkflowId(thread), 'checkpointThread');
  return runs.filter((run) => run !== present?.runId);
}

/** Waits for a thread to have sealed what it held so often: it does so after it has answered. */
async function untilSealed(thread: string, times = 1): Promise<string[]> {
  await expect.poll(async () => (await closedRuns(thread)).length).toBeGreaterThanOrEqual(times);
  return closedRuns(thread);
}

describe('a thread over many runs', () => {
  const thread = `many-${threads.id()}`;
  const COUNT = 900;
  let stored: Checkpoint[] = [];
  beforeAll(async () => {
    await saver.putStep(thread, 'early', { seen: 'first' });
    await saver.putStep(thread, 'changed', { seen: 'first' });
    stored = await fill(thread, COUNT);
    await saver.putStep(thread, 'changed', { seen: 'second' });
  });

  test('has sealed what it held, in the order of the calls', async () => {
    await untilSealed(thread, 2);
    expect(stored.map(({ state }) => state['n'])).toEqual(Array.from({ length: COUNT }, (_, n) => n));
    expect(await saver.list(thread, { limit: COUNT + 1 })).toEqual(stored.toReversed());
    expect(await saver.get(thread)).toEqual(stored.at(-1));
  });

  test('is read in pages that join over segments', async () => {
    for (const limit of [100, 249, 251]) expect(await pages(thread, limit)).toEqual(stored.toReversed());
  });

  test('finds any checkpoint and any step, wherever it lies', async () => {
    for (const n of [0, 1, 247, 248, 249, 250, 251, 499, 899]) {
      expect(await saver.get(thread, { checkpointId: `id-${n}` })).toEqual(stored[n]);
    }
    expect(await saver.get(thread, { checkpointId: 'id-900' })).toBeNull();
    expect((await saver.getStep(thread, 'early'))?.value).toEqual({ seen: 'first' });
    expect((await saver.getStep(thread, 'changed'))?.value).toEqual({ seen: 'second' });
    expect((await saver.listSteps(thread)).map(({ key, value }) => [key, value])).toEqual([
      ['changed', { seen: 'second' }],
      ['early', { seen: 'first' }],
    ]);
  });

  test('stores a put that is repeated once, however long ago it was, and refuses other content', async () => {
    for (const n of [0, 300, 899]) {
      expect(await saver.put(thread, { n, padding: '' }, { id: `id-${n}` })).toEqual(stored[n]);
      expect(await rejection(saver.put(thread, { n: -1 }, { id: `id-${n}` }))).toMatchObject({
        code: 'CONFLICT',
      });
    }
    expect(await saver.list(thread, { limit: 2 })).toEqual(stored.toReversed().slice(0, 2));
  });

  test('takes a parent of any age', async () => {
    const { parent_id } = await saver.put(`${thread}-b`, {}, { id: 'x' });
    expect(parent_id).toBeNull();
    expect(await rejection(saver.put(thread, {}, { parentId: 'x' }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    const child = await saver.put(thread, {}, { parentId: 'id-3' });
    expect(child.parent_id).toBe('id-3');
    stored.push(child);
  });

  test('outlives the retention of its namespace, which removes what has closed', async () => {
    const closed = await untilSealed(thread, 2);
    for (const runId of closed) {
      const execution = { workflowId: threadWorkflowId(thread), runId };
      const { namespace } = threads.client.options;
      await threads.client.workflowService.deleteWorkflowExecution({
        namespace,
        workflowExecution: execution,
      });
      await untilGone(threads.client, execution.workflowId, runId);
      const segment = await findExecution(threads.client, segmentId(runId));
      expect(segment?.running).toBe(true);
    }
    expect(await pages(thread, 200)).toEqual(stored.toReversed());
  });

  test('says so when a segment was taken away behind its back', async () => {
    const victim = `${thread}-c`;
    await fill(victim, 260);
    const [run] = await untilSealed(victim);
    for (let n = 0; n < 5; n++) await saver.put(victim, { later: n });
    await threads.client.workflowService.deleteWorkflowExecution({
      namespace: threads.client.options.namespace,
      workflowExecution: { workflowId: segmentId(run ?? '') },
    });
    const fresh = threads.newSaver();
    expect(await rejection(fresh.list(victim, { limit: 20 }))).toMatchObject({
      code: 'CHECKPOINT_CORRUPTION',
    });
    expect((await fresh.list(victim, { limit: 5 })).length).toBe(5);
  });

  test('keeps what is in a segment that signals would fill, and deletes all its runs', async () => {
    const victim = `${thread}-e`;
    const kept = await fill(victim, 260);
    const [run = ''] = await untilSealed(victim);
    const id = segmentId(run);
    const first = (await findExecution(threads.client, id))?.runId ?? '';
    // Any client may; four megabytes are what Temporal suggests to go on at.
    const segment = threads.client.workflow.getHandle(id);
    const signals = Array.from({ length: 5 }, () => segment.signal('noise', 'x'.repeat(900_000)));
    await Promise.allSettled(signals);
    // A task does not count the signals that the server held back while the one before it ran: a later one does.
    const touched = async (): Promise<string | undefined> => {
      await segment.signal('noise', '').catch(() => undefined);
      return (await findExecution(threads.client, id))?.runId;
    };
    await expect.poll(touched).not.toBe(first);
    const next = await findExecution(threads.client, id);
    expect(next?.running).toBe(true);
    expect(await runsUpTo(threads.client, id, next?.runId ?? '')).toEqual([first, next?.runId]);
    expect(await threads.newSaver().list(victim, { limit: 300 })).toEqual(kept.toReversed());

    await saver.delete(victim);
    for (const runId of [first, next?.runId ?? '']) await untilGone(threads.client, id, runId);
    expect(await findExecution(threads.client, id)).toBeNull();
  }, 150_000);

  test('is deleted with its segments and its past runs', async () => {
    const victim = `${thread}-d`;
    await fill(victim, 260);
    const [run = ''] = await untilSealed(victim);
    expect((await findExecution(threads.client, segmentId(run)))?.running).toBe(true);
    await saver.delete(victim);
    expect(await saver.list(victim)).toEqual([]);
    expect(await findExecution(threads.client, segmentId(run))).toBeNull();
    await untilGone(threads.client, threadWorkflowId(victim), run);
  });
});

describe('large states', () => {
  test('are stored apart in parts, read whole, and deleted with their thread', async () => {
    const thread = threads.id();
    const text = '"\\é😀\u0000\ud800'.repeat(150_000);
    const large = await saver.put(thread, { text, list: [{ n: 1 }] }, { id: 'large', metadata: { m: 1 } });
    const stored = [large, ...(await fill(thread, 3, 990_000))];
    expect(large.state['text']).toHaveLength(text.length);
    expect(await threads.newSaver().list(thread)).toEqual(stored.toReversed());
    expect(await threads.newSaver().get(thread, { checkpointId: 'large' })).toEqual(large);

    const repeated = await saver.put(thread, { list: [{ n: 1 }], text }, { id: 'large', metadata: { m: 1 } });
    expect(repeated).toEqual(large);
    expect(await rejection(saver.put(thread, { text }, { id: 'large' }))).toMatchObject({ code: 'CONFLICT' });
    expect(await saver.get(thread, { checkpointId: 'large' })).toEqual(large);

    await fill(`${thread}-b`, 1, 100_000);
    await expect.poll(async () => (await threads.contents(thread)).length).toBeGreaterThan(6);
    await saver.delete(thread);
    await expect.poll(() => threads.contents(thread)).toEqual([]);
    expect(await saver.list(`${thread}-b`)).toHaveLength(1);
  });

  test('of which a part was taken away are no checkpoint any more, and say so', async () => {
    const thread = threads.id();
    await fill(thread, 2, 100_000);
    await expect.poll(async () => (await threads.contents(thread)).length).toBe(2);
    const { namespace } = threads.client.options;
    for (const workflowId of await threads.contents(thread)) {
      await threads.client.workflowService.deleteWorkflowExecution({
        namespace,
        workflowExecution: { workflowId },
      });
    }
    expect(await rejection(saver.get(thread))).toMatchObject({ code: 'CHECKPOINT_CORRUPTION' });
    await saver.delete(thread);
    expect(await saver.get(thread)).toBeNull();
  });

  test('are refused over the limit before they are sent, and by the thread when another client sends them', async () => {
    const thread = threads.id();
    await saver.put(thread, { n: 0 });
    const state = { text: 'é'.repeat(500_000) };
    expect(await rejection(saver.put(thread, { text: 'x'.repeat(20_000_000) }))).toMatchObject({
      code: 'TOO_LARGE',
    });
    expect(await rejection(saver.put(thread, {}, { metadata: state }))).toMatchObject({ code: 'TOO_LARGE' });
    const handle = threads.client.workflow.getHandle(threadWorkflowId(thread));
    const put = { epoch: 0, id: 'x', state, parent_id: null, metadata: {} };
    for (const name of ['put', 'putStep', 'writes', 'delete', 'swept']) {
      expect(await rejection(handle.executeUpdate(name, { args: [put] })), name).toMatchObject({
        cause: { type: 'TOO_LARGE' },
      });
    }
    expect(await rejection(handle.executeUpdate('put', { args: [{ state: 5 }] }))).toMatchObject({
      cause: { type: 'INVALID_ARGUMENT' },
    });
    expect(await saver.list(thread)).toHaveLength(1);
  });

  test('that are held in the thread itself are sealed before they are too many', async () => {
    const thread = threads.id();
    // Each just under the size from which on it would be stored apart.
    const stored = await fill(thread, 60, 31_000);
    expect(await threads.newSaver().list(thread, { limit: 100 })).toEqual(stored.toReversed());
    await untilSealed(thread, 3);
  });
});

describe('a deletion', () => {
  test('is no hindrance to a client that did not hear of it: what it writes after begins the thread anew', async () => {
    const thread = threads.id();
    const [mine, theirs] = [threads.newSaver(), threads.newSaver()];
    await mine.put(thread, { n: 0 });
    await theirs.delete(thread);
    await mine.put(thread, { n: 2 });
    expect((await theirs.list(thread)).map(({ state }) => state)).toEqual([{ n: 2 }]);
    await mine.delete(thread);
    await mine.put(thread, { n: 3 });
    expect((await theirs.list(thread)).map(({ state }) => state)).toEqual([{ n: 3 }]);
  });

  test('that was interrupted is finished by the next', async () => {
    const thread = threads.id();
    await fill(thread, 260);
    const [run = ''] = await untilSealed(thread);
    const handle = threads.client.workflow.getHandle(threadWorkflowId(thread));
    // What the client does first; then it dies.
    await handle.executeUpdate('delete', { args: [{ runs: [], contents: [] }] });
    expect(await saver.list(thread)).toEqual([]);
    expect(await findExecution(threads.client, segmentId(run))).not.toBeNull();
    await threads.newSaver().delete(thread);
    expect(await findExecution(threads.client, segmentId(run))).toBeNull();
  });
});

describe('the id of a thread', () => {
  test('may be that of a running workflow of another kind', async () => {
    const thread = threads.id();
    await threads.client.workflow.start('checkpointSegment', {
      workflowId: thread,
      taskQueue: threads.taskQueue,
      args: [{}],
    });
    const stored = await saver.put(thread, { n: 1 });
    expect(await saver.list(thread)).toEqual([stored]);
    await saver.delete(thread);
    expect((await findExecution(threads.client, thread))?.running).toBe(true);
  });

  test("is no session's any more: one that is started under it would hide it", async () => {
    const thread = threads.id();
    const sessions = new Sessions(threads.client, { taskQueue: threads.taskQueue });
    const stored = await saver.put(thread, { n: 1 });
    expect(await rejection(sessions.start('nobody', { id: thread }))).toMatchObject({ code: 'CONFLICT' });
    expect(
      await rejection(sessions.start('nobody', { id: thread, onExisting: 'use', message: 'x' })),
    ).toMatchObject({
      code: 'CONFLICT',
    });
    expect(await threads.newSaver().get(thread)).toEqual(stored);
    expect(await findExecution(threads.client, thread)).toBeNull();
  });

  test('cannot be that of the workflow of another thread', async () => {
    const thread = threads.id();
    await saver.put(thread, { n: 1 });
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('perdure-thread/') };
    expect(await rejection(saver.put(threadWorkflowId(thread), { n: 2 }))).toMatchObject(refused);
    expect((await saver.get(thread))?.state).toEqual({ n: 1 });
  });
});

test('without a worker a put says so, and repeated under its id it is stored once', async () => {
  const thread = threads.id();
  const nobody = { taskQueue: `${threads.taskQueue}-later`, timeoutMs: 500 };
  const lonely = new TemporalSaver(threads.client, nobody);
  const error = await rejection(lonely.put(thread, { n: 1 }));
  expect(error).toMatchObject({ code: 'NO_WORKER', details: { id: expect.any(String) } });
  expect(await rejection(lonely.get(thread))).toMatchObject({ code: 'NO_WORKER' });

  const { id } = (error as PerdureError).details as { id: string };
  await threads.startWorker(nobody.taskQueue);
  const patient = new TemporalSaver(threads.client, { taskQueue: nobody.taskQueue });
  const stored = await patient.put(thread, { n: 1 }, { id });
  expect(await patient.list(thread)).toEqual([stored]);
});
