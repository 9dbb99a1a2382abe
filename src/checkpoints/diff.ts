/** Computes what changed between two checkpoints. */
import type { Checkpoint } from '../contract/checkpoint.ts';
import type { JsonObject, JsonValue } from '../contract/json.ts';

/** One change. `path` is a JSON Pointer (RFC 6901) into the state. */
export type Change =
  | { op: 'add'; path: string; value: JsonValue }
  | { op: 'remove'; path: string; before: JsonValue }
  | { op: 'replace'; path: string; before: JsonValue; value: JsonValue };

/**
 * The changes that turn the state of `a` into the state of `b`, in the order in which to apply them (as a JSON Patch,
 * RFC 6902). Lists are compared index by index, because a session's lists grow at their end. Equal states give `[]`.
 * A checkpoint has only the messages and calls of its own run. To compare checkpoints from different runs of a session,
 * pass the results of `wholeCheckpoint`.
 */
export function diff(a: Pick<Checkpoint, 'state'>, b: Pick<Checkpoint, 'state'>): Change[] {
  const changes: Change[] = [];
  compare('', a.state, b.state, changes);
  return changes;
}

function compare(path: string, before: JsonValue, value: JsonValue, changes: Change[]): void {
  if (Array.isArray(before) && Array.isArray(value)) compareLists(path, before, value, changes);
  else if (isObject(before) && isObject(value)) compareObjects(path, before, value, changes);
  else if (before !== value) changes.push({ op: 'replace', path, before, value });
}

function compareLists(path: string, before: JsonValue[], value: JsonValue[], changes: Change[]): void {
  const shared = Math.min(before.length, value.length);
  for (let i = 0; i < shared; i++) compare(`${path}/${i}`, before[i] ?? null, value[i] ?? null, changes);
  // Remove from the end, so that earlier indexes stay valid.
  for (let i = before.length - 1; i >= shared; i--) {
    changes.push({ op: 'remove', path: `${path}/${i}`, before: before[i] ?? null });
  }
  for (let i = shared; i < value.length; i++) {
    changes.push({ op: 'add', path: `${path}/${i}`, value: value[i] ?? null });
  }
}

function compareObjects(path: string, before: JsonObject, value: JsonObject, changes: Change[]): void {
  for (const [key, item] of Object.entries(before)) {
    const at = `${path}/${token(key)}`;
    if (Object.hasOwn(value, key)) compare(at, item, value[key] ?? null, changes);
    else changes.push({ op: 'remove', path: at, before: item });
  }
  for (const [key, item] of Object.entries(value)) {
    if (!Object.hasOwn(before, key)) changes.push({ op: 'add', path: `${path}/${token(key)}`, value: item });
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Escapes a key for a JSON Pointer. */
function token(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
