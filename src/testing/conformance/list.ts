import assert from 'node:assert/strict';
import { BLANK, ids, listIn, NOT_STRINGS, putMany, refuses, type Spec } from './kit.ts';

export const listSpec: Spec = (test) => {
  test('gives the newest ten first, whole', async ({ saver, thread }) => {
    const stored = await putMany(saver, thread, 12);
    assert.deepEqual(await saver.list(thread), stored.toReversed().slice(0, 10));
  });

  test('keeps to its limit', async ({ saver, thread }) => {
    const newest = ids(await putMany(saver, thread, 3)).toReversed();
    for (const limit of [1, 2, 3, 4, 1_000_000]) {
      assert.deepEqual(ids(await saver.list(thread, { limit })), newest.slice(0, limit));
    }
    for (const limit of [0, -1, -1_000_000]) assert.deepEqual(await saver.list(thread, { limit }), []);
  });

  test('refuses a limit that is no whole number', async ({ saver, thread }) => {
    await saver.put(thread, {});
    for (const bad of [1.5, Number.NaN, Number.POSITIVE_INFINITY, '2', null, 2n]) {
      await assert.rejects(saver.list(thread, { limit: bad as number }), TypeError);
    }
  });

  test('gives what is strictly before an id', async ({ saver, thread }) => {
    const stored = await putMany(saver, thread, 4);
    const newest = ids(stored).toReversed();
    for (const [n, before] of newest.entries()) {
      assert.deepEqual(ids(await saver.list(thread, { before })), newest.slice(n + 1));
      assert.deepEqual(ids(await saver.list(thread, { before, limit: 1 })), newest.slice(n + 1, n + 2));
    }
  });

  test('gives nothing before an unknown id or one of another thread', async ({
    saver,
    thread,
    otherThread,
  }) => {
    await putMany(saver, thread, 2);
    const [stranger] = await putMany(saver, otherThread('b'), 1);
    assert.deepEqual(await saver.list(thread, { before: 'unknown' }), []);
    assert.deepEqual(await saver.list(thread, { before: stranger?.id ?? '' }), []);
    assert.deepEqual(await saver.list(otherThread('nobody')), []);
    assert.deepEqual(await saver.list(otherThread('nobody'), { before: stranger?.id ?? '' }), []);
  });

  test('pages through a whole thread without a gap or a repeat', async ({ saver, thread, many }) => {
    const stored = await putMany(saver, thread, many);
    const seen: string[] = [];
    for (;;) {
      const page = await saver.list(thread, {
        limit: 7,
        ...(seen.length > 0 ? { before: seen.at(-1) } : {}),
      });
      seen.push(...ids(page));
      if (page.length < 7) break;
    }
    assert.deepEqual(seen, ids(stored).toReversed());
  });

  test('is isolated from what it returned', async ({ saver, thread }) => {
    await saver.put(thread, { list: [1] });
    const [first] = await saver.list(thread);
    listIn(first?.state).push(2);
    assert.deepEqual((await saver.list(thread))[0]?.state, { list: [1] });
  });

  test('refuses what is no id', async ({ saver, thread }) => {
    for (const bad of NOT_STRINGS) {
      await assert.rejects(saver.list(bad as string), TypeError);
      await assert.rejects(saver.list(thread, { before: bad as string }), TypeError);
    }
    for (const bad of BLANK) {
      await refuses(saver.list(bad), 'INVALID_ARGUMENT', 'threadId');
      await refuses(saver.list(thread, { before: bad }), 'INVALID_ARGUMENT', 'before');
    }
  });
};
