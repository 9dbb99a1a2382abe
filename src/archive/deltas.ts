/**
 * Stores a state as the changes since the one before. Whole states would grow with the square of a session's length.
 */

import type { Change } from '../checkpoints/diff.ts';
import type { JsonObject, JsonValue } from '../contract/json.ts';

/**
 * Applies the changes that `diff` found, in place.
 *
 * @throws Error when the changes do not fit this state
 */
export function applyChanges(state: JsonObject, changes: readonly Change[]): void {
  for (const change of changes) {
    const keys = change.path.split('/').slice(1).map(unescaped);
    const last = keys.pop();
    if (last === undefined) throw new Error('a change replaces the whole state');
    let parent: JsonValue = state;
    for (const key of keys) parent = child(parent, key);
    if (Array.isArray(parent)) changeList(parent, Number(last), change);
    else if (typeof parent === 'object' && parent !== null) changeObject(parent, last, change);
    else throw new Error(`there is no path ${change.path}`);
  }
}

function changeList(list: JsonValue[], index: number, change: Change): void {
  const expected = change.op === 'add' ? index === list.length : index < list.length;
  if (!Number.isInteger(index) || !expected) throw new Error(`there is no path ${change.path}`);
  if (change.op === 'remove') list.splice(index, 1);
  else list[index] = change.value;
}

function changeObject(object: JsonObject, key: string, change: Change): void {
  if (change.op === 'remove') delete object[key];
  else
    Object.defineProperty(object, key, {
      value: change.value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
}

function child(parent: JsonValue, key: string): JsonValue {
  const found =
    typeof parent === 'object' && parent !== null && Object.hasOwn(parent, key)
      ? (parent as JsonObject)[key]
      : undefined;
  if (found === undefined) throw new Error(`there is no key ${key}`);
  return found;
}

function unescaped(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}
