/** What several savers and deletions at any time do to the threads of LangGraph, on every store of this package. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Annotation,
  Command,
  END,
  interrupt,
  MemorySaver as Reference,
  START,
  StateGraph,
} from '@langchain/langgraph';
import {
  type BaseCheckpointSaver,
  type CheckpointTuple,
  emptyCheckpoint,
  uuid6,
} from '@langchain/langgraph-checkpoint';
import { describe, expect, onTestFinished, test } from 'vitest';
import { jsonSize } from '../../src/contract/json.ts';
import { THREAD_LIMIT, threadWorkflowId } from '../../src/contract/thread.ts';
import { type CheckpointSaver, MemorySaver, SqliteSaver } from '../../src/index.ts';
import { LangGraphSaver } from '../../src/saver/langgraph/index.ts';
import type { SegmentRef } from '../../src/workflows/index.ts';
import { useThreads } from './support/threads.ts';

const threads = useThreads();
let workers = 0;

/** Opens savers of one store, each as another process would. */
type Open = () => CheckpointSaver;

async function onTemporal(): Promise<Open> {
  if (workers++ === 0) await threads.startWorker();
  return () => threads.newSaver();
}

async function onFile(): Promise<Open> {
  const directory = mkdtempSync(join(tmpdir(), 'langgraph-threads-'));
  const open: SqliteSaver[] = [];
  onTestFinished(async () => {
    for (const saver of open) await saver.close();
    rmSync(directory, { recursive: true });
  });
  return () => {
    const saver = new SqliteSaver(join(directory, 'file'));
    open.push(saver);
    return saver;
  };
}

async function inMemory(): Promise<Open> {
  const saver = new MemorySaver();
  return () => saver;
}

const STORES: [string, () => Promise<Open>][] = [
  ['in memory', inMemory],
  ['in a file', onFile],
  ['on Temporal', onTemporal],
];

const Log = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
  kept: Annotation<string>(),
});

const inThread = (thread: string) => ({ configurable: { thread_id: thread } });

/** A graph of three steps and a sub-graph, with something to happen in the second step. */
const steps = (checkpointer: BaseCheckpointSaver, happen: () => Promise<void>) => {
  const inner = new StateGraph(Log)
    .addNode('inside', () => ({ log: ['inside'] }))
    .addEdge(START, 'inside')
    .addEdge('inside', END)
    .compile();
  return new StateGraph(Log)
    .addNode('one', () => ({ log: ['one'] }))
    .addNode('two', async () => {
      await happen();
      return { log: ['two'] };
    })
    .addNode('sub', async () => ({ log: (await inner.invoke({ log: [] })).log }))
    .addNode('three', () => ({ log: ['three'] }))
    .addEdge(START, 'one')
    .addEdge('one', 'two')
    .addEdge('two', 'sub')
    .addEdge('sub', 'three')
    .addEdge('three', END)
    .compile({ checkpointer });
};

async function all(tuples: AsyncIterable<CheckpointTuple>): Promise<CheckpointTuple[]> {
  const found: CheckpointTuple[] = [];
  for await (const tuple of tuples) found.push(tuple);
  return found;
}

async function listed(saver: LangGraphSaver): Promise<string[]> {
  const tuples = await all(saver.list({}));
  return [...new Set(tuples.map(({ config }) => config.configurable?.['thread_id'] as string))].sort();
}

const META = { source: 'loop', step: 0, parents: {} } as const;

/** A checkpoint without values. */
function putOne(saver: LangGraphSaver, thread: string): ReturnType<LangGraphSaver['put']> {
  return saver.put(inThread(thread), { ...emptyCheckpoint(), id: uuid6(3) }, META, {});
}

describe.each(STORES)('%s', (_, openStore) => {
  test.each([
    ['by the saver that it runs on', true],
    ['by another', false],
  ])('a thread that is deleted while a graph runs, %s, stays deleted', async (_by, isOwn) => {
    const open = await openStore();
    const prefix = threads.id();
    const saver = new LangGraphSaver(open(), { prefix });
    const deleter = isOwn ? saver : new LangGraphSaver(open(), { prefix });
    await steps(saver, async () => {}).invoke({ log: ['other'] }, inThread('other'));
    let deletes = true;
    const graph = steps(saver, async () => {
      if (!deletes) return;
      // LangGraph goes on to the next step while the last one is being stored.
      while ((await saver.getTuple(inThread('deleted')))?.metadata?.step !== 1);
      await deleter.deleteThread('deleted');
    });

    const ended = await graph.invoke({ log: ['start'], kept: 'x' }, inThread('deleted'));

    expect(ended).toEqual({ log: ['start', 'one', 'two', 'inside', 'three'], kept: 'x' });
    expect((await graph.getState(inThread('deleted'))).values).toEqual({});
    const store = open();
    expect(await store.list(`${prefix}/deleted`, { limit: 100 })).toEqual([]);
    expect(await store.listSteps(`${prefix}/deleted`)).toEqual([]);
    expect(await listed(deleter)).toEqual(['other']);

    deletes = false;
    const again = await graph.invoke({ log: ['again'] }, inThread('deleted'));
    expect(again).toEqual({ log: ['again', 'one', 'two', 'inside', 'three'] });
    expect(
      (await steps(new LangGraphSaver(open(), { prefix }), async () => {}).getState(inThread('deleted')))
        .values,
    ).toEqual(again);
    expect(await listed(deleter)).toEqual(['deleted', 'other']);
  });

  test('a put that is on its way when its thread is deleted does not bring it back', async () => {
    const open = await openStore();
    const saver = new LangGraphSaver(open(), { prefix: threads.id() });
    const putting = putOne(saver, 'deleted');
    await saver.deleteThread('deleted');
    const next = await saver.put(await putting, { ...emptyCheckpoint(), id: uuid6(4) }, META, {});
    await saver.putWrites(next, [['channel', 'late']], 'task');
    expect(await saver.getTuple(inThread('deleted'))).toBeUndefined();
    expect(await listed(saver)).toEqual([]);
  });

  test('writes of several savers on one checkpoint are all kept, in the order of each', async () => {
    const open = await openStore();
    const prefix = threads.id();
    const savers = Array.from({ length: 4 }, () => new LangGraphSaver(open(), { prefix }));
    const [first] = savers as [LangGraphSaver];
    const config = await putOne(first, 'thread');
    await Promise.all(
      savers.flatMap((saver, s) =>
        [0, 1, 2].map((n) => saver.putWrites(config, [['channel', { s, n }]], `task ${s} ${n}`)),
      ),
    );
    await savers[1]?.putWrites(config, [['__resume__', ['yes']]], 'task 0 0');
    await savers[2]?.putWrites(config, [['__resume__', ['yes', 'no']]], 'task 0 0');
    // What is repeated counts once, and does not change what is there.
    await savers[3]?.putWrites(config, [['channel', 'late']], 'task 0 0');

    for (const reader of [first, new LangGraphSaver(open(), { prefix })]) {
      const writes = (await reader.getTuple(config))?.pendingWrites ?? [];
      const expected = savers.flatMap((__, s) =>
        [0, 1, 2].map((n) => [`task ${s} ${n}`, 'channel', { s, n }]),
      );
      expect(writes).toHaveLength(13);
      expect(writes).toEqual(
        expect.arrayContaining([...expected, ['task 0 0', '__resume__', ['yes', 'no']]]),
      );
      const [tuple, ...more] = await all(reader.list(inThread('thread')));
      expect(more).toEqual([]);
      expect(tuple?.pendingWrites).toEqual(writes);
    }
  });

  test('threads are listed over savers, and a deleted one no more', async () => {
    const open = await openStore();
    const prefix = threads.id();
    const [one, two] = [open(), open()].map((store) => new LangGraphSaver(store, { prefix })) as [
      LangGraphSaver,
      LangGraphSaver,
    ];
    await Promise.all(['a', 'b', 'c / 🦜', 'd'].map((thread) => putOne(one, thread)));
    await putOne(two, 'e');
    expect(await listed(two)).toEqual(['a', 'b', 'c / 🦜', 'd', 'e']);
    await two.deleteThread('b');
    expect(await listed(one)).toEqual(['a', 'c / 🦜', 'd', 'e']);
    expect(await all(one.list({}, { limit: 3 }))).toHaveLength(3);
    // The first saver knows the thread from before.
    await putOne(one, 'b');
    expect(await listed(two)).toEqual(['a', 'b', 'c / 🦜', 'd', 'e']);
  });

  test('a thread that cannot be read fails when it is asked for, and not the list of all', async () => {
    const open = await openStore();
    const prefix = threads.id();
    const saver = new LangGraphSaver(open(), { prefix });
    for (const thread of ['a', 'broken', 'c']) await putOne(saver, thread);
    const store = open();
    const thread = `${prefix}/broken`;
    const [record] = await store.list(thread);
    const broken = { ...record?.state, checkpoint_id: 'broken', holders: { channel: 'of nowhere' } };
    await store.put(thread, broken, { id: 'broken' });

    expect(await listed(saver)).toEqual(['a', 'c']);
    await expect(all(saver.list(inThread('broken')))).rejects.toMatchObject({
      code: 'CHECKPOINT_CORRUPTION',
    });
    await expect(saver.getTuple(inThread('broken'))).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPTION' });
  });

  test('a graph that stores only at its end can be interrupted twice in one step', async () => {
    const open = await openStore();
    const prefix = threads.id();
    const build = () =>
      new StateGraph(Log)
        .addNode('ask', () => ({ log: [interrupt('first?'), interrupt('second?')] }))
        .addEdge(START, 'ask')
        .addEdge('ask', END)
        .compile({ checkpointer: new LangGraphSaver(open(), { prefix }) });
    const options = { ...inThread('thread'), durability: 'exit' as const };
    expect(await build().invoke({ log: [] }, options)).toMatchObject({
      __interrupt__: [{ value: 'first?' }],
    });
    expect(await build().invoke(new Command({ resume: 'yes' }), options)).toMatchObject({
      __interrupt__: [{ value: 'second?' }],
    });
    expect(await build().invoke(new Command({ resume: 'no' }), options)).toEqual({ log: ['yes', 'no'] });
  });

  test('a copy of a checkpoint has its values, and not those of its parent', async () => {
    const open = await openStore();
    const copies = async (saver: BaseCheckpointSaver): Promise<unknown[]> => {
      const graph = steps(saver, async () => {});
      await graph.invoke({ log: ['start'], kept: 'x' }, inThread('copied'));
      const found: unknown[] = [];
      for (const { config } of await all(saver.list(inThread('copied')))) {
        if (config.configurable?.['checkpoint_ns'] !== '') continue;
        const copy = await graph.updateState(config, null, '__copy__');
        found.push((await graph.getState(copy)).values);
      }
      return found;
    };
    const expected = await copies(new Reference());
    expect(expected).toHaveLength(6);
    expect(await copies(new LangGraphSaver(open(), { prefix: threads.id() }))).toEqual(expected);
  });
});

test('what is put again after a deletion, under the ids of before, is whole', async () => {
  const saver = new LangGraphSaver(new MemorySaver());
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(3) };
  for (const round of ['first', 'second']) {
    const config = await saver.put(inThread('again'), checkpoint, META, {});
    await saver.putWrites(config, [['channel', round]], 'task');
    expect((await saver.getTuple(config))?.pendingWrites).toEqual([['task', 'channel', round]]);
    await saver.deleteThread('again');
  }
});

test('a checkpoint whose parent is not there has all its values', async () => {
  const saver = new LangGraphSaver(new MemorySaver());
  const values = { changed: 1, kept: 2 };
  const checkpoint = {
    ...emptyCheckpoint(),
    id: uuid6(3),
    channel_values: values,
    channel_versions: { changed: 2, kept: 1 },
  };
  const parent = { configurable: { thread_id: 'moved', checkpoint_ns: '', checkpoint_id: uuid6(2) } };
  const config = await saver.put(parent, checkpoint, META, { changed: 2 });
  expect(await saver.getTuple(config)).toMatchObject({
    checkpoint: { channel_values: values },
    parentConfig: parent,
  });
});

/** A store in memory, which counts how often a page of a thread is asked of it. */
class CountingSaver extends MemorySaver {
  pages = 0;

  override list(...args: Parameters<MemorySaver['list']>): ReturnType<MemorySaver['list']> {
    this.pages += 1;
    return super.list(...args);
  }
}

/** A graph that goes through a sub-graph so many times, which asks a question the last time. */
const rounds = (checkpointer: BaseCheckpointSaver, times: number) => {
  const inner = new StateGraph(Log)
    .addNode('inside', ({ log }) => ({ log: [log.length === times ? String(interrupt('well?')) : 'inside'] }))
    .addEdge(START, 'inside')
    .addEdge('inside', END)
    .compile();
  return new StateGraph(Log)
    .addNode('sub', async ({ log }) => ({ log: (await inner.invoke({ log })).log.slice(log.length) }))
    .addEdge(START, 'sub')
    .addConditionalEdges('sub', ({ log }) => (log.length > times ? END : 'sub'))
    .compile({ checkpointer });
};

test.each([
  ['async', 240, 5],
  // Nothing is stored before the question, so there is nothing to look through.
  ['exit', 3, 65],
] as const)(
  'a sub-graph that begins does not look through the thread, and one that was interrupted is found: %s',
  async (durability, records, pages) => {
    const store = new CountingSaver();
    const options = { ...inThread('long'), durability, recursionLimit: 200 };
    const asked = await rounds(new LangGraphSaver(store), 60).invoke({ log: ['start'] }, options);
    expect(asked).toMatchObject({ __interrupt__: [{ value: 'well?' }] });
    expect((await store.list('langgraph/long', { limit: 1_000 })).length).toBeGreaterThan(records);
    expect(store.pages).toBeLessThan(pages);
    store.pages = 0;

    const answered = await rounds(new LangGraphSaver(store), 60).invoke(
      new Command({ resume: 'yes' }),
      options,
    );
    expect(answered.log).toHaveLength(61);
    expect(answered.log.at(-1)).toBe('yes');
    expect(store.pages).toBeLessThan(10);
  },
);

/** A store as one process has it, which stops after some of its calls until it may go on. */
function held(store: CheckpointSaver, stopsAfter: (call: string, args: unknown[]) => boolean) {
  let stopped = (): void => undefined;
  let goOn = (): void => undefined;
  const stops = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  const resumed = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const saver = new Proxy(store, {
    get: (target, name: keyof CheckpointSaver) => {
      const call = target[name].bind(target) as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        const result = await call(...args);
        if (stopsAfter(name, args)) {
          stopped();
          await resumed;
        }
        return result;
      };
    },
  });
  return { saver, stops, goOn };
}

test('a thread that begins anew while it is deleted is listed if it is there', async () => {
  for (const stopsAfter of ['delete', 'putStep']) {
    const store = new MemorySaver();
    await putOne(new LangGraphSaver(store), 'anew');
    const other = held(store, (call) => call === stopsAfter);
    const deleting = new LangGraphSaver(other.saver).deleteThread('anew');
    await other.stops;
    const saver = new LangGraphSaver(store);
    await putOne(saver, 'anew');
    other.goOn();
    await deleting;
    const isThere = (await saver.getTuple(inThread('anew'))) !== undefined;
    expect(await listed(new LangGraphSaver(store)), stopsAfter).toEqual(isThere ? ['anew'] : []);
    await putOne(saver, 'anew');
    expect(await listed(new LangGraphSaver(store)), stopsAfter).toEqual(['anew']);
  }
});

test('a thread is listed whose deletion comes between its name in the index and its first checkpoint', async () => {
  const store = new MemorySaver();
  await putOne(new LangGraphSaver(store), 'anew');
  const one = held(store, (call, [thread]) => call === 'putStep' && thread === 'langgraph');
  const putting = putOne(new LangGraphSaver(one.saver), 'anew');
  await one.stops;
  const other = new LangGraphSaver(store);
  await other.deleteThread('anew');
  one.goOn();
  await putting;
  expect(await other.getTuple(inThread('anew'))).toBeDefined();
  expect(await listed(other)).toEqual(['anew']);
});

test('large checkpoints are looked through in small pages', async () => {
  const limits: number[] = [];
  class Watched extends MemorySaver {
    override list(...args: Parameters<MemorySaver['list']>): ReturnType<MemorySaver['list']> {
      limits.push(args[1]?.limit ?? 10);
      return super.list(...args);
    }
  }
  const saver = new LangGraphSaver(new Watched());
  let config = await putOne(saver, 'large');
  for (let i = 0; i < 40; i++) {
    const values = { large: 'x'.repeat(1_000_000) };
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(i), channel_values: values };
    config = await saver.put(config, checkpoint, META, { large: i });
  }
  expect(await all(saver.list(inThread('large')))).toHaveLength(41);
  expect(limits[0]).toBe(4);
  expect(Math.max(...limits)).toBeLessThan(10);
});

/** A thread of the store that takes nothing more. */
async function fill(thread: string, entries: unknown[]): Promise<void> {
  const segments: SegmentRef[] = [];
  while (jsonSize(segments) <= THREAD_LIMIT.index) {
    const run = `00000000-0000-4000-8000-${String(segments.length).padStart(12, '0')}`;
    segments.push({ run, marks: 'f'.repeat(12 * THREAD_LIMIT.sealEntries), checkpoints: 0, steps: 0 });
  }
  await threads.client.workflow.start('checkpointThread', {
    workflowId: threadWorkflowId(thread),
    taskQueue: threads.taskQueue,
    args: [{ threadId: thread, epoch: 0, segments, entries, garbage: { runs: [], contents: [] } }],
  });
}

test('an index that is full goes on in another, for every saver', async () => {
  const open = await onTemporal();
  const prefix = threads.id();
  const step = (key: string) => ({ kind: 'step', key, value: true, updated_at: '2024-05-01T00:00:00.000Z' });
  await fill(prefix, ['old', 'older'].map(step));
  const store = open();
  const [one, two] = [store, open()].map((of) => new LangGraphSaver(of, { prefix })) as [
    LangGraphSaver,
    LangGraphSaver,
  ];
  await putOne(one, 'old');
  await putOne(one, 'older');
  expect(await listed(two)).toEqual(['old', 'older']);
  await Promise.all([putOne(one, 'new'), putOne(two, 'newer')]);
  expect(await listed(two)).toEqual(['new', 'newer', 'old', 'older']);
  await two.deleteThread('old');
  expect(await listed(one)).toEqual(['new', 'newer', 'older']);
  await putOne(one, 'old');
  expect(await listed(new LangGraphSaver(open(), { prefix }))).toEqual(['new', 'newer', 'old', 'older']);

  await fill(`${prefix} (3)`, [
    {
      kind: 'checkpoint',
      id: 'opened',
      state: {},
      parent_id: null,
      metadata: {},
      created_at: '2024-05-01T00:00:00.000Z',
    },
    step('of the third'),
  ]);
  await putOne(one, 'of the third');
  await putOne(two, 'newest');
  await one.deleteThread('new');
  expect(await listed(two)).toEqual(['newer', 'newest', 'of the third', 'old', 'older']);
});
