import assert from 'node:assert/strict';
import type { JsonValue } from '../../contract/json.ts';
import { BLANK, listIn, NOT_STRINGS, notJson, refuses, type Spec } from './kit.ts';

export const stepsSpec: Spec = (test) => {
  test('are stored by key, and the same key overwrites', async ({ saver, thread }) => {
    const first = await saver.putStep(thread, 'b', { a: 1 });
    assert.deepEqual(
      { ...first, updated_at: '' },
      { thread_id: thread, key: 'b', value: { a: 1 }, updated_at: '' },
    );
    assert.equal(new Date(first.updated_at).toISOString(), first.updated_at);
    const second = await saver.putStep(thread, 'b', { a: 2 });
    await saver.putStep(thread, 'a', null);
    assert.deepEqual(await saver.getStep(thread, 'b'), second);
    assert.deepEqual(
      (await saver.listSteps(thread)).map(({ key, value }) => [key, value]),
      [
        ['a', null],
        ['b', { a: 2 }],
      ],
    );
  });

  test('take any JSON value and any key', async ({ saver, thread }) => {
    const values: JsonValue[] = [null, false, 0, '', [], {}, [null, { a: [1] }], 'é😀'];
    for (const [n, value] of values.entries()) await saver.putStep(thread, `k/${n} 😀`, value);
    for (const [n, value] of values.entries()) {
      assert.deepEqual((await saver.getStep(thread, `k/${n} 😀`))?.value, value);
    }
    assert.equal((await saver.listSteps(thread)).length, values.length);
  });

  test('stand beside checkpoints and are none', async ({ saver, thread }) => {
    await saver.putStep(thread, 'key', 1);
    assert.equal(await saver.get(thread), null);
    assert.deepEqual(await saver.list(thread), []);
    const { id } = await saver.put(thread, {});
    assert.equal(await saver.getStep(thread, id), null);
    assert.equal(await saver.get(thread, { checkpointId: 'key' }), null);
  });

  test('are null where there is none', async ({ saver, thread, otherThread }) => {
    await saver.putStep(thread, 'key', 1);
    assert.equal(await saver.getStep(thread, 'other'), null);
    assert.equal(await saver.getStep(otherThread('b'), 'key'), null);
    assert.deepEqual(await saver.listSteps(otherThread('b')), []);
  });

  test('are isolated from what was passed in and what was returned', async ({ saver, thread }) => {
    const value = { list: [1] };
    const call = saver.putStep(thread, 'key', value);
    value.list.push(2);
    const stored = await call;
    listIn(stored.value).push(3);
    const listed = await saver.listSteps(thread);
    listIn(listed[0]?.value).push(4);
    assert.deepEqual((await saver.getStep(thread, 'key'))?.value, { list: [1] });
  });

  test('refuse bad ids, keys and values', async ({ saver, thread }) => {
    for (const bad of NOT_STRINGS) {
      await assert.rejects(saver.putStep(bad as string, 'key', 1), TypeError);
      await assert.rejects(saver.putStep(thread, bad as string, 1), TypeError);
      await assert.rejects(saver.getStep(thread, bad as string), TypeError);
      await assert.rejects(saver.listSteps(bad as string), TypeError);
    }
    for (const bad of BLANK) {
      await refuses(saver.putStep(bad, 'key', 1), 'INVALID_ARGUMENT', 'threadId');
      await refuses(saver.putStep(thread, bad, 1), 'INVALID_ARGUMENT', 'key');
      await refuses(saver.getStep(thread, bad), 'INVALID_ARGUMENT', 'key');
      await refuses(saver.listSteps(bad), 'INVALID_ARGUMENT', 'threadId');
    }
    for (const { state, path } of notJson())
      await refuses(saver.putStep(thread, 'key', state), 'NOT_JSON', path);
    await refuses(saver.putStep(thread, 'key', undefined as unknown as JsonValue), 'NOT_JSON', 'value');
    assert.deepEqual(await saver.listSteps(thread), []);
  });
};
