/** Plain JSON: what is refused, what is canonical, how large it is. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalJson,
  digestJson,
  jsonSize,
  sha256Hex,
  toJson,
  utf8Length,
} from '../../src/contract/json.ts';
import { assertSize } from '../../src/contract/limits.ts';
import { liveWindow } from '../../src/contract/live-text.ts';
import { isPerdureError, type JsonValue, LIMIT } from '../../src/index.ts';
import './seed.ts';

const anyText = fc.string({ unit: 'binary', maxLength: 40 });
/** Text with halves of surrogate pairs, as a slice of a text may be. */
const brokenText = fc
  .array(fc.oneof(fc.integer({ min: 0xd700, max: 0xe000 }), fc.nat(0xffff)), { maxLength: 30 })
  .map((units) => String.fromCharCode(...units));
const plain = fc.jsonValue({ stringUnit: 'binary' }) as fc.Arbitrary<JsonValue>;

/** Where the first value is that `toJson` refuses, or `null`. */
function refused(value: unknown): string | null {
  try {
    toJson(value, 'input');
    return null;
  } catch (error) {
    if (!isPerdureError(error, 'NOT_JSON')) throw error;
    expect(error.message.startsWith(`${String(error.details['path'])} is `)).toBe(true);
    return String(error.details['path']);
  }
}

describe('toJson', () => {
  test('copies plain JSON: equal, and nothing shared', () => {
    fc.assert(
      fc.property(plain, (value) => {
        const copy = toJson(value);
        expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
        expect(copy).toEqual(JSON.parse(JSON.stringify(value)));
        if (typeof value === 'object' && value !== null) expect(copy).not.toBe(value);
      }),
    );
  });

  test('refuses whatever JSON would change, and takes whatever it would not', () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withBoxedValues: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withObjectString: true,
          withNullPrototype: true,
          withSparseArray: true,
          withTypedArray: true,
          stringUnit: 'binary',
        }),
        (value) => {
          if (refused(value) !== null) return;
          expect(toJson(value)).toStrictEqual(JSON.parse(JSON.stringify(value)));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  const cycle: { a: { back?: unknown }[] } = { a: [{}] };
  cycle.a[0] = { back: cycle };
  class Point {
    readonly x = 1;
  }
  test.each<[string, unknown, string]>([
    ['undefined', { a: { b: undefined } }, 'input.a.b'],
    ['a function', [0, [() => 1]], 'input[1][0]'],
    ['a symbol', { 'odd key': Symbol('s') }, 'input["odd key"]'],
    ['a BigInt', { n: 1n }, 'input.n'],
    ['NaN', { n: [Number.NaN] }, 'input.n[0]'],
    ['Infinity', { n: Number.NEGATIVE_INFINITY }, 'input.n'],
    ['a Date', { at: new Date(0) }, 'input.at'],
    ['a Map', new Map(), 'input'],
    ['a Set', { s: new Set() }, 'input.s'],
    ['bytes', { b: new Uint8Array(1) }, 'input.b'],
    ['an instance of a class', { p: new Point() }, 'input.p'],
    ['a boxed text', { s: Object('s') }, 'input.s'],
    ['a symbol key', { o: { [Symbol('k')]: 1 } }, 'input.o'],
    ['a hole in an array', Object.assign([1], { 2: 3 }), 'input[1]'],
    ['an array with names', Object.assign([1], { name: 'x' }), 'input'],
    ['a cycle', cycle, 'input.a[0].back'],
  ])('refuses %s, with its path', (_name, value, path) => {
    expect(refused(value)).toBe(path);
  });

  test('takes a value that stands twice, a key named __proto__, and objects without a prototype', () => {
    const shared = { a: 1 };
    expect(toJson([shared, shared])).toEqual([shared, shared]);
    const odd: unknown = JSON.parse('{"__proto__":{"polluted":true}}');
    const copy = toJson(odd);
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"polluted":true}}');
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(toJson(Object.assign(Object.create(null), shared))).toEqual(shared);
  });

  test('writes the negative zero as JSON does', () => {
    expect(Object.is(toJson(-0), 0)).toBe(true);
  });
});

describe('canonical JSON', () => {
  // The samples of RFC 8785: section 3.2.2 and 3.2.3, and appendix B.
  test.each<[unknown, string]>([
    [
      JSON.parse(
        '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
          '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
      ),
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ],
    [
      {
        '\u20ac': 'Euro Sign',
        '\r': 'Carriage Return',
        '\ufb33': 'Hebrew Letter Dalet With Dagesh',
        '1': 'One',
        '\ud83d\ude00': 'Emoji: Grinning Face',
        '\u0080': 'Control',
        '\u00f6': 'Latin Small Letter O With Diaeresis',
      },
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",' +
        '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    ],
    [
      [0, -0, 5e-324, 1.7976931348623157e308, 9007199254740992, 295147905179352830000, 1e21, 1e23, 0.000001],
      '[0,0,5e-324,1.7976931348623157e+308,9007199254740992,295147905179352830000,1e+21,1e+23,0.000001]',
    ],
  ])('equals the samples of RFC 8785', (value, text) => {
    expect(canonicalJson(value as JsonValue)).toBe(text);
  });

  test('is the same whatever the order of keys, is JSON of the value, and is its own canonical form', () => {
    const reversed = (value: JsonValue): JsonValue => {
      if (Array.isArray(value)) return value.map(reversed);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, item]) => [key, reversed(item)]),
      );
    };
    fc.assert(
      fc.property(plain, (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(reversed(value))).toBe(text);
        expect(canonicalJson(JSON.parse(text) as JsonValue)).toBe(text);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(digestJson(value)).toBe(sha256Hex(text));
      }),
    );
  });

  test('has the digests that others compute', () => {
    expect(sha256Hex('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(sha256Hex('äöü')).toBe('bc329dbfa029f66476cb633afcd3136c65c840d0003ef6479583c09e64e2c33e');
  });
});

describe('sizes', () => {
  test('are those of the UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.oneof(anyText, brokenText), (text) => {
        expect(utf8Length(text)).toBe(Buffer.byteLength(text));
      }),
      { numRuns: 2_000 },
    );
    fc.assert(
      fc.property(plain, (value) => {
        expect(jsonSize(value)).toBe(Buffer.byteLength(JSON.stringify(value)));
      }),
    );
  });

  test('are refused above a limit, with the field and the size', () => {
    fc.assert(
      fc.property(plain, fc.nat(200), (value, limit) => {
        const size = Buffer.byteLength(JSON.stringify(value));
        const check = (): void => assertSize('message.text', value, limit);
        if (size <= limit) expect(check).not.toThrow();
        else expect(check).toThrow(`message.text is ${size} bytes of JSON, the limit is ${limit}`);
      }),
    );
  });

  test('a window of live text is the end of the text, as much as a heartbeat holds', () => {
    const long = fc
      .tuple(fc.oneof(anyText, brokenText), fc.nat(2_000))
      .map(([text, times]) => text.repeat(times).slice(0, 40_000));
    fc.assert(
      fc.property(long, fc.integer({ min: 1, max: 9 }), (text, attempt) => {
        const window = liveWindow(attempt, text);
        expect(window.attempt).toBe(attempt);
        expect(text.slice(window.offset)).toBe(window.text);
        expect(jsonSize(window)).toBeLessThanOrEqual(LIMIT.liveText);
        // Nothing is left out that would have fitted by far.
        if (window.offset > 0)
          expect(jsonSize(text.slice(-window.text.length * 2))).toBeGreaterThan(LIMIT.liveText / 2);
      }),
      { numRuns: 300 },
    );
  });
});
