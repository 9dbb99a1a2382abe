import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyChanges } from '../../src/archive/deltas.ts';
import { canonicalJson } from '../../src/contract/json.ts';
import { type Change, diff, type JsonObject } from '../../src/index.ts';

const states: fc.Arbitrary<JsonObject> = fc.dictionary(
  fc.oneof(fc.string(), fc.constantFrom('a', 'a/b', 'a~1b', '', '0', '__proto__')),
  fc.jsonValue() as fc.Arbitrary<JsonObject>,
);

test('a state and the changes to the next give the next', () => {
  fc.assert(
    fc.property(states, states, (before, after) => {
      const changes = JSON.parse(JSON.stringify(diff({ state: before }, { state: after }))) as Change[];
      const state = JSON.parse(JSON.stringify(before)) as JsonObject;
      applyChanges(state, changes);
      expect(canonicalJson(state)).toBe(canonicalJson(JSON.parse(JSON.stringify(after)) as JsonObject));
    }),
  );
});

test('changes of another state are refused', () => {
  const refused: Change[] = [
    { op: 'add', path: '/list/2', value: 1 },
    { op: 'replace', path: '/list/1', before: 1, value: 2 },
    { op: 'remove', path: '/none/at/all', before: 1 },
    { op: 'add', path: '/text/x', value: 1 },
  ];
  for (const change of refused) {
    expect(() => applyChanges({ list: [1], text: 'x' }, [change])).toThrow(
      change.path === '/none/at/all' ? 'there is no key none' : change.path,
    );
  }
});
