/**
 * Plain JSON: what may enter the history, a checkpoint or a key.
 *
 * Canonical JSON is RFC 8785 (sorted keys, shortest numbers), so that two equal values have equal bytes.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import canonicalizeModule from 'canonicalize';
import { PerdureError } from './errors.ts';

/** A plain JSON value. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
/** A plain JSON object. */
export type JsonObject = { [key: string]: JsonValue };

// The bundler and Node see this CommonJS default export differently.
const canonicalize = canonicalizeModule as unknown as (value: unknown) => string | undefined;

/** The canonical JSON text (RFC 8785) of a plain JSON value. */
export function canonicalJson(value: JsonValue): string {
  return canonicalize(value) ?? 'null';
}

type Crypto = { hash: (algorithm: 'sha256', text: string) => string };
type Builtins = { process?: { getBuiltinModule?: (name: 'node:crypto') => Crypto } };
/** Node's own SHA-256 makes a fold a third faster. The workflow sandbox has none. */
const crypto = (globalThis as Builtins).process?.getBuiltinModule?.('node:crypto');

/**
 * SHA-256 of a text's UTF-8 bytes, in lower-case hex. Synchronous, and the same in Node and in the workflow sandbox.
 */
export function sha256Hex(text: string): string {
  return crypto?.hash('sha256', text) ?? bytesToHex(sha256(utf8ToBytes(text)));
}

/** SHA-256 of the canonical JSON of a value, in lower-case hex. */
export function digestJson(value: JsonValue): string {
  return sha256Hex(canonicalJson(value));
}

/** The size of a text in UTF-8 bytes, without encoding it. */
export function utf8Length(text: string): number {
  // Most texts are ASCII, and this test is much cheaper than the loop.
  if (!/[\u0080-\uffff]/.test(text)) return text.length;
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    if (unit < 0x800) bytes += 1;
    else {
      bytes += 2;
      // A surrogate pair is two units and four bytes.
      if (unit >= 0xd800 && unit <= 0xdbff) {
        const next = text.charCodeAt(i + 1);
        if (next >= 0xdc00 && next <= 0xdfff) i++;
      }
    }
  }
  return bytes;
}

/** The size of a value as JSON, in UTF-8 bytes, before any codec. */
export function jsonSize(value: unknown): number {
  return utf8Length(JSON.stringify(value) ?? '');
}

/** The deepest nesting of a value. Deeper values overflow the stack of some readers. */
export const MAX_DEPTH = 200;

/** Whether a value is nested deeper than a number of levels, found without recursion. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= levels; depth++) {
    level = level.flatMap((item): unknown[] =>
      typeof item === 'object' && item !== null ? Object.values(item) : [],
    );
    if (level.length === 0) return false;
  }
  return true;
}

function describe(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'object' && value !== null) return value.constructor?.name ?? 'object';
  return typeof value;
}

/**
 * Checks that a value is plain JSON and returns a deep copy of it.
 *
 * @throws PerdureError `NOT_JSON` with the path of the first value that JSON would change or lose: `undefined`,
 * functions, symbols, `BigInt`, `NaN`, `Infinity`, `Date`, `Map`, instances of classes, arrays with named
 * properties, cycles, more than {@link MAX_DEPTH} levels.
 */
export function toJson(value: unknown, path = '$'): JsonValue {
  return copy(value, path, new Set());
}

type Optional<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T];

/** An object without the fields that are `undefined`. */
export function defined<T extends object>(
  fields: T,
): Omit<T, Optional<T>> & { [K in Optional<T>]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

/** A copy of plain JSON. Texts are shared, which makes it several times cheaper than a clone. */
export function copyJson<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => copyJson(item)) as T;
  const out: Record<string, unknown> = {};
  // `Object.entries` would make a pair for each key and double the work.
  for (const key of Object.keys(value)) {
    const item = copyJson((value as Record<string, unknown>)[key]);
    if (key !== '__proto__') out[key] = item;
    else
      Object.defineProperty(out, key, {
        value: item,
        enumerable: true,
        writable: true,
        configurable: true,
      });
  }
  return out as T;
}

function copy(value: unknown, path: string, open: Set<object>): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    // JSON has no negative zero.
    if (Number.isFinite(value)) return value === 0 ? 0 : value;
    throw notJson(path, describe(value));
  }
  if (typeof value !== 'object') throw notJson(path, describe(value));
  if (open.has(value)) throw notJson(path, 'a cycle');
  if (open.size === MAX_DEPTH) throw notJson(path, `nested deeper than ${MAX_DEPTH} levels`);
  open.add(value);
  let result: JsonValue;
  if (Array.isArray(value)) {
    result = Array.from(value, (item: unknown, i) => copy(item, `${path}[${i}]`, open));
    if (Object.keys(value).length > value.length) throw notJson(path, 'an array with named properties');
  } else {
    const proto: unknown = Object.getPrototypeOf(value);
    // A plain object of another realm has that realm's `Object.prototype`, which itself has no prototype.
    if (proto !== null && Object.getPrototypeOf(proto) !== null) throw notJson(path, describe(value));
    if (Object.getOwnPropertySymbols(value).length > 0) throw notJson(path, 'an object with symbol keys');
    const out: JsonObject = {};
    for (const [key, item] of Object.entries(value)) {
      const at = /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
      Object.defineProperty(out, key, {
        value: copy(item, at, open),
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
    result = out;
  }
  open.delete(value);
  return result;
}

function notJson(path: string, found: string): PerdureError {
  return new PerdureError(
    'NOT_JSON',
    `${path} is ${found}, which is not plain JSON. Convert it to a string, number, boolean, null, array or plain object first.`,
    { details: { path, found } },
  );
}
