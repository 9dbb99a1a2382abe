/**
 * The ids of messages that people sent to earlier runs. The ids themselves are in the sealed pieces. The state holds a
 * Bloom filter of constant size: an id that does not pass was never taken, and an id that passes is looked up.
 */
import { sha256Hex } from '../contract/json.ts';

/** Characters of the filter, of six bits each. With 5,000 ids in it, one new id in 600 passes by mistake. */
const SIZE = 12_000;
const BITS = 6;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** How many bits one id sets. */
const MARKS = 6;

/** The filter with more ids. */
export function withTaken(filter: string | undefined, ids: readonly string[]): string {
  const values = Array.from({ length: SIZE }, (_, at) => valueAt(filter, at));
  for (const { at, bit } of ids.flatMap(marksOf)) values[at] = (values[at] ?? 0) | bit;
  return values.map((value) => ALPHABET[value]).join('');
}

/** Whether an earlier run may have taken a message of this id. `false` is certain. */
export function mayBeTaken(filter: string | undefined, id: string): boolean {
  return filter !== undefined && marksOf(id).every(({ at, bit }) => (valueAt(filter, at) & bit) !== 0);
}

function valueAt(filter: string | undefined, at: number): number {
  return Math.max(0, ALPHABET.indexOf(filter?.[at] ?? ''));
}

function marksOf(id: string): { at: number; bit: number }[] {
  const hash = sha256Hex(id);
  return Array.from({ length: MARKS }, (_, n) => {
    const mark = Number.parseInt(hash.slice(8 * n, 8 * n + 8), 16) % (SIZE * BITS);
    return { at: Math.floor(mark / BITS), bit: 1 << (mark % BITS) };
  });
}
