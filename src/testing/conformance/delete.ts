import assert from 'node:assert/strict';
import { BLANK, ids, NOT_STRINGS, putMany, refuses, type Spec } from './kit.ts';

export const deleteSpec: Spec = (test, subject) => {
  test('removes all of a thread and nothing of its siblings', async ({ saver, thread, otherThread }) => {
    const stored = await putMany(saver, thread, 3);
    const siblings = [otherThread('b'), `${thread}/b`, thread.slice(0, -1), thread.toUpperCase()];
    for (const sibling of siblings) await saver.put(sibling, {}, { id: stored[0]?.id ?? '' });
    await saver.putStep(thread, 'key', 1);
    await saver.putStep(otherThread('b'), 'key', 1);
    await saver.delete(thread);
    assert.equal(await saver.get(thread), null);
    assert.equal(await saver.get(thread, { checkpointId: stored[1]?.id ?? '' }), null);
    assert.deepEqual(await saver.list(thread), []);
    assert.deepEqual(await saver.listSteps(thread), []);
    assert.equal(await saver.getStep(thread, 'key'), null);
    for (const sibling of siblings) assert.equal((await saver.list(sibling)).length, 1);
    assert.equal((await saver.getStep(otherThread('b'), 'key'))?.value, 1);
  });

  test('is a no-op for an unknown thread, and twice', async ({ saver, thread, otherThread }) => {
    await saver.put(thread, {});
    await saver.delete(otherThread('nobody'));
    await saver.delete(thread);
    await saver.delete(thread);
    assert.equal(await saver.get(thread), null);
  });

  test('is not undone by a put that is under way', async ({ saver, thread, many }) => {
    await saver.put(thread, { n: -1 });
    const late = Array.from({ length: many }, (_, n) => saver.put(thread, { n }));
    const deleted = saver.delete(thread);
    await Promise.allSettled([...late, deleted]);
    await deleted;
    assert.deepEqual(await saver.list(thread), []);
    assert.equal(await saver.get(thread), null);
  });

  test('is not undone by a put that goes on from what was deleted', async ({ saver, thread }) => {
    const { id } = await saver.put(thread, {});
    await saver.delete(thread);
    await assert.rejects(saver.put(thread, {}, { parentId: id }));
    assert.deepEqual(await saver.list(thread), []);
  });

  test('lets the thread begin anew, and with the same ids', async ({ saver, thread }) => {
    const first = await saver.put(thread, { a: 1 }, { id: 'x' });
    await saver.delete(thread);
    const second = await saver.put(thread, { a: 2 }, { id: 'x' });
    assert.deepEqual(await saver.list(thread), [second]);
    assert.deepEqual(second.state, { a: 2 });
    assert.notDeepEqual(second.state, first.state);
    assert.deepEqual(ids(await saver.list(thread, { before: 'x' })), []);
  });

  test('refuses what is no id', async ({ saver }) => {
    for (const bad of NOT_STRINGS) await assert.rejects(saver.delete(bad as string), TypeError);
    for (const bad of BLANK) await refuses(saver.delete(bad), 'INVALID_ARGUMENT', 'threadId');
  });

  if (subject.reopen === undefined) return;
  test('stays after a restart', async ({ saver, thread, reopen }) => {
    await putMany(saver, thread, 2);
    await saver.delete(thread);
    assert.deepEqual(await (await reopen()).list(thread), []);
  });
};
