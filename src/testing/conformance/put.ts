import assert from 'node:assert/strict';
import type { JsonObject } from '../../contract/json.ts';
import { BLANK, ids, listIn, NOT_STRINGS, notJson, putMany, refuses, type Spec } from './kit.ts';

export const putSpec: Spec = (test, subject) => {
  test('returns the stored record', async ({ saver, thread }) => {
    const first = await saver.put(thread, { a: [1, 'é', null, { b: true }] });
    assert.deepEqual(Object.keys(first).sort(), [
      'created_at',
      'id',
      'metadata',
      'parent_id',
      'state',
      'thread_id',
    ]);
    assert.equal(first.thread_id, thread);
    assert.deepEqual(first.state, { a: [1, 'é', null, { b: true }] });
    assert.equal(first.parent_id, null);
    assert.deepEqual(first.metadata, {});
    assert.equal(new Date(first.created_at).toISOString(), first.created_at);
    assert.ok(first.id.length > 0);
    const second = await saver.put(thread, {}, { parentId: first.id, metadata: { step: 2 } });
    assert.equal(second.parent_id, first.id);
    assert.deepEqual(second.metadata, { step: 2 });
    assert.deepEqual(await saver.get(thread, { checkpointId: second.id }), second);
  });

  test('never overwrites: equal states are records of their own', async ({ saver, thread }) => {
    const first = await saver.put(thread, { a: 1 });
    const second = await saver.put(thread, { a: 1 });
    assert.notEqual(first.id, second.id);
    assert.deepEqual(ids(await saver.list(thread)), [second.id, first.id]);
  });

  test('stores the same id with the same content once, and keeps its place', async ({ saver, thread }) => {
    const first = await saver.put(thread, { a: 1, b: 2 }, { id: 'first', metadata: { m: 1 } });
    const second = await saver.put(thread, { a: 2 }, { id: 'second', parentId: 'first' });
    const again = await saver.put(thread, { b: 2, a: 1 }, { id: 'first', metadata: { m: 1 } });
    assert.deepEqual(again, first);
    assert.deepEqual(await saver.list(thread), [second, first]);
  });

  test('refuses the same id with another state, parent or metadata', async ({ saver, thread }) => {
    const first = await saver.put(thread, { a: 1 }, { id: 'first' });
    await refuses(saver.put(thread, { a: 2 }, { id: 'first' }), 'CONFLICT', 'first');
    await refuses(saver.put(thread, { a: 1 }, { id: 'first', metadata: { m: 1 } }), 'CONFLICT', 'first');
    const second = await saver.put(thread, {});
    await refuses(saver.put(thread, { a: 1 }, { id: 'first', parentId: second.id }), 'CONFLICT', 'first');
    assert.deepEqual(await saver.list(thread), [second, first]);
  });

  test('lets two threads use one id', async ({ saver, thread, otherThread }) => {
    await saver.put(thread, { a: 1 }, { id: 'x' });
    await saver.put(otherThread('b'), { a: 2 }, { id: 'x' });
    assert.deepEqual((await saver.get(thread, { checkpointId: 'x' }))?.state, { a: 1 });
    assert.deepEqual((await saver.get(otherThread('b'), { checkpointId: 'x' }))?.state, { a: 2 });
  });

  test('refuses a parent that is not of the thread', async ({ saver, thread, otherThread }) => {
    const stranger = await saver.put(otherThread('b'), {});
    await refuses(saver.put(thread, {}, { parentId: stranger.id }), 'INVALID_ARGUMENT', 'parentId');
    await refuses(saver.put(thread, {}, { parentId: 'nobody' }), 'INVALID_ARGUMENT', 'parentId');
    assert.deepEqual(await saver.list(thread), []);
  });

  test('refuses what is no id', async ({ saver, thread }) => {
    for (const bad of NOT_STRINGS) {
      await assert.rejects(saver.put(bad as string, {}), TypeError);
      if (bad === null) continue;
      await assert.rejects(saver.put(thread, {}, { parentId: bad as string }), TypeError);
      await assert.rejects(saver.put(thread, {}, { id: bad as string }), TypeError);
    }
    for (const bad of BLANK) {
      await refuses(saver.put(bad, {}), 'INVALID_ARGUMENT', 'threadId');
      await refuses(saver.put(thread, {}, { parentId: bad }), 'INVALID_ARGUMENT', 'parentId');
      await refuses(saver.put(thread, {}, { id: bad }), 'INVALID_ARGUMENT', 'id');
    }
    assert.deepEqual(await saver.list(thread), []);
  });

  test('refuses what is not plain JSON, with its path, and stores nothing', async ({ saver, thread }) => {
    for (const { state, path } of notJson()) {
      await refuses(saver.put(thread, state), 'NOT_JSON', path);
      await refuses(saver.put(thread, {}, { metadata: state }), 'NOT_JSON', path);
    }
    for (const bad of [null, [], 'text', 1]) {
      await refuses(saver.put(thread, bad as unknown as JsonObject), 'NOT_JSON', 'state');
    }
    assert.equal(await saver.get(thread), null);
  });

  test('keeps JSON as it is: keys of any kind, large and small numbers, every character', async ({
    saver,
    thread,
  }) => {
    const state = JSON.parse(
      '{"__proto__":{"a":1},"constructor":1,"":0,"2":1,"1":2,"n":1e308,"m":-0.1,"i":9007199254740991,"s":"\\u0000\\ud800 \\u2028😀","deep":[[[[[]]]]]}',
    ) as JsonObject;
    const { id } = await saver.put(thread, state, { metadata: state });
    const back = await saver.get(thread, { checkpointId: id });
    assert.deepEqual(back?.state, state);
    assert.deepEqual(back?.metadata, state);
    assert.ok(Object.hasOwn(back?.state ?? {}, '__proto__'));
  });

  test('takes thread ids of any characters, and tells similar ones apart', async ({ saver, thread }) => {
    const names = [
      '1',
      '01',
      'a/b',
      'a//b',
      'a b',
      'a  b',
      'A/B',
      "'; --",
      '%',
      '😀',
      'é',
      'e\u0301',
      '.',
      '..',
    ];
    const threads = [...names.map((name) => `${thread}/${name}`), `${thread}${'x'.repeat(1_000)}`];
    threads.push(`${thread}${'x'.repeat(999)}y`);
    for (const [n, name] of threads.entries()) await saver.put(name, { n });
    for (const [n, name] of threads.entries()) {
      const all = await saver.list(name);
      assert.deepEqual(
        all.map(({ state, thread_id }) => [state, thread_id]),
        [[{ n }, name]],
      );
    }
  });

  test('is isolated from what was passed in and from what it returned', async ({ saver, thread }) => {
    const state = { list: [1] };
    const metadata = { m: { k: 1 } };
    const call = saver.put(thread, state, { metadata });
    state.list.push(2);
    metadata.m.k = 2;
    const record = await call;
    state.list.push(3);
    listIn(record.state).push(4);
    record.metadata['m'] = 'changed';
    const back = await saver.get(thread);
    assert.deepEqual(back?.state, { list: [1] });
    assert.deepEqual(back?.metadata, { m: { k: 1 } });
  });

  test('stores puts at one time all and once, in one order', async ({ saver, thread, many }) => {
    const stored = await Promise.all(Array.from({ length: many }, (_, n) => saver.put(thread, { n })));
    const all = await saver.list(thread, { limit: many + 1 });
    assert.deepEqual(new Set(ids(all)), new Set(ids(stored)));
    assert.equal(all.length, many);
    assert.deepEqual(ids(await saver.list(thread, { limit: many + 1 })), ids(all));
  });

  if (subject.reopen === undefined) return;
  test('survives a restart', async ({ saver, thread, reopen }) => {
    const stored = await putMany(saver, thread, 3);
    await saver.putStep(thread, 'key', { a: 1 });
    const next = await reopen();
    assert.deepEqual(await next.list(thread), stored.toReversed());
    assert.deepEqual((await next.getStep(thread, 'key'))?.value, { a: 1 });
    const after = await next.put(thread, { n: 3 }, { parentId: stored[2]?.id ?? null });
    assert.equal((await next.get(thread))?.id, after.id);
  });
};
