import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/index.ts';
import { type Change, diff } from '../../src/index.ts';

const state = (maxDepth = 4): fc.Arbitrary<JsonObject> =>
  fc.dictionary(
    fc.oneof(fc.constantFrom('a', 'b', '', 'a/b', '~', '~1', '__proto__', '0'), fc.string()),
    fc.jsonValue({ maxDepth }) as fc.Arbitrary<JsonValue>,
    { maxKeys: 5 },
  );

/** Applies changes one after the other, as a JSON Patch would be. */
function apply(document: JsonObject, changes: readonly Change[]): JsonObject {
  const root = structuredClone(document);
  for (const change of changes) {
    const keys = change.path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop() ?? '';
    let at: unknown = root;
    for (const key of keys) at = Object.getOwnPropertyDescriptor(at, key)?.value;
    const before: unknown = Object.getOwnPropertyDescriptor(at, last)?.value;
    if (change.op !== 'add') expect(before).toEqual(change.before);
    if (Array.isArray(at)) {
      if (change.op === 'remove') at.splice(Number(last), 1);
      else at.splice(Number(last), change.op === 'add' ? 0 : 1, change.value);
    } else if (change.op === 'remove') Reflect.deleteProperty(at as object, last);
    else {
      const { value } = change;
      Object.defineProperty(at, last, { value, enumerable: true, configurable: true, writable: true });
    }
  }
  return root;
}

test('says what changed, by the path of each change', () => {
  const before = { turn: 1, transcript: [{ id: 'a' }], paused: { by: 'ada' }, calls: [1, 2, 3] };
  const after = { turn: 2, transcript: [{ id: 'a' }, { id: 'b' }], paused: null, calls: [1], 'a/b': true };
  expect(diff({ state: before }, { state: after })).toEqual([
    { op: 'replace', path: '/turn', before: 1, value: 2 },
    { op: 'add', path: '/transcript/1', value: { id: 'b' } },
    { op: 'replace', path: '/paused', before: { by: 'ada' }, value: null },
    { op: 'remove', path: '/calls/2', before: 3 },
    { op: 'remove', path: '/calls/1', before: 2 },
    { op: 'add', path: '/a~1b', value: true },
  ]);
});

test('applied to the one gives the other, and is empty when nothing changed', () => {
  fc.assert(
    fc.property(state(), state(), (a, b) => {
      expect(apply(a, diff({ state: a }, { state: b }))).toEqual(b);
      expect(diff({ state: a }, { state: structuredClone(a) })).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test('is as small as what changed', () => {
  fc.assert(
    fc.property(state(), fc.string(), (a, text) => {
      const b = structuredClone(a);
      b['new key'] = [text];
      const [change, ...others] = diff({ state: a }, { state: b });
      expect(others).toEqual([]);
      expect(change?.path).toBe('/new key');
    }),
  );
});
