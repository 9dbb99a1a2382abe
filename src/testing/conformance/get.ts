import assert from 'node:assert/strict';
import { BLANK, listIn, NOT_STRINGS, putMany, refuses, type Spec } from './kit.ts';

export const getSpec: Spec = (test) => {
  test('gives the latest without an id, and any other by its id', async ({ saver, thread }) => {
    const stored = await putMany(saver, thread, 3);
    assert.deepEqual(await saver.get(thread), stored[2]);
    assert.deepEqual(await saver.get(thread, {}), stored[2]);
    for (const record of stored)
      assert.deepEqual(await saver.get(thread, { checkpointId: record.id }), record);
  });

  test('gives null for an unknown thread, an unknown id, and an id of another thread', async ({
    saver,
    thread,
    otherThread,
  }) => {
    const { id } = await saver.put(thread, {});
    await saver.put(otherThread('b'), {});
    assert.equal(await saver.get(otherThread('nobody')), null);
    assert.equal(await saver.get(otherThread('nobody'), { checkpointId: id }), null);
    assert.equal(await saver.get(thread, { checkpointId: 'unknown' }), null);
    assert.equal(await saver.get(otherThread('b'), { checkpointId: id }), null);
  });

  test('agrees with list on the latest when the clock stands still or steps back', async ({
    saver,
    thread,
    clock,
  }) => {
    const stored: string[] = [];
    for (const ms of [2_000_000, 2_000_000, 1_000_000, 0, 3_000_000, 1_500_000]) {
      clock.set(ms);
      stored.push((await saver.put(thread, { ms })).id);
      assert.equal((await saver.get(thread))?.id, stored.at(-1));
      assert.deepEqual(
        (await saver.list(thread)).map(({ id }) => id),
        stored.toReversed(),
      );
    }
  });

  test('is isolated from what it returned', async ({ saver, thread }) => {
    await saver.put(thread, { list: [1] });
    const first = await saver.get(thread);
    listIn(first?.state).push(2);
    assert.deepEqual((await saver.get(thread))?.state, { list: [1] });
  });

  test('refuses what is no id', async ({ saver, thread }) => {
    for (const bad of NOT_STRINGS) {
      await assert.rejects(saver.get(bad as string), TypeError);
      await assert.rejects(saver.get(thread, { checkpointId: bad as string }), TypeError);
    }
    for (const bad of BLANK) {
      await refuses(saver.get(bad), 'INVALID_ARGUMENT', 'threadId');
      await refuses(saver.get(thread, { checkpointId: bad }), 'INVALID_ARGUMENT', 'checkpointId');
    }
  });
};
