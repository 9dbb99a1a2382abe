/** The parts of activities that need no server: what is recorded of an output, whose transcript is served, what a failure means. */

import { APICallError, JSONParseError, LoadAPIKeyError, NoSuchToolError } from 'ai';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type RequestFailure, requestFailure } from '../../src/activities/model-errors.ts';
import { recordable } from '../../src/activities/recordable.ts';
import { TranscriptMemory } from '../../src/activities/transcript-memory.ts';
import { jsonSize, toJson } from '../../src/contract/json.ts';
import { chainDigest, EMPTY_DIGEST, shortDigest } from '../../src/contract/keys.ts';
import type { JsonValue, Message, Position } from '../../src/index.ts';
import './seed.ts';

describe('what is recorded of an output', () => {
  const anything = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
    withSparseArray: true,
    withTypedArray: true,
    stringUnit: 'binary',
  });
  const text = fc
    .tuple(fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }), fc.nat(300))
    .map(([t, n]) => t.repeat(n));

  test('is plain JSON within the limit, whatever the tool returned', () => {
    fc.assert(
      fc.property(
        fc.oneof(anything, text, fc.array(text)),
        fc.integer({ min: 0, max: 2_000 }),
        (output, limit) => {
          const recorded = recordable(output, limit);
          expect(toJson(recorded)).toEqual(recorded);
          expect(jsonSize(recorded)).toBeLessThanOrEqual(Math.max(limit, 2));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('is the output itself when that is JSON and fits, and else says that it was shortened', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue() as fc.Arbitrary<JsonValue>, text),
        fc.integer({ min: 150, max: 1_000 }),
        (output, limit) => {
          const recorded = recordable(output, limit);
          const size = jsonSize(output);
          if (size <= limit) {
            expect(recorded).toEqual(toJson(output));
            return;
          }
          const [, kept = '', had, bytes] =
            /^(.*) \[shortened: this result had (\d+) bytes, (\d+) are kept\]$/s.exec(recorded as string) ??
            [];
          expect(Number(had)).toBe(size);
          expect(Number(bytes)).toBe(kept === '' ? 0 : jsonSize(kept));
        },
      ),
      { numRuns: 1_000 },
    );
  });

  const deep = (depth: number): unknown => {
    let value: unknown = 1;
    for (let i = 0; i < depth; i++) value = [value];
    return value;
  };
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const trap = {
    get secret(): string {
      throw new Error('not for you');
    },
  };
  test.each<[string, unknown, unknown]>([
    ['nothing', undefined, null],
    ['a date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
    ['a number that is none', Number.NaN, null],
    ['a BigInt', 12n, '12'],
    ['a function', () => 1, null],
    ['a field that JSON leaves out', { a: undefined, b: 1 }, { b: 1 }],
    ['a cycle', cycle, '[a object that JSON cannot hold]'],
    ['a getter that throws', trap, '[a object that JSON cannot hold]'],
  ])('of %s', (_name, output, recorded) => {
    expect(recordable(output, 1_000)).toEqual(recorded);
  });

  test('of a result that was shortened before, with the size that it had', () => {
    const before = recordable('x'.repeat(5_000), 1_000) as string;
    const told = recordable(`[a notice]\n${before}`, 1_000) as string;
    expect(told).toMatch(/^\[a notice\]\nx+ \[shortened: this result had 5002 bytes, 9\d\d are kept\]$/);
    expect(told.match(/shortened/g)).toHaveLength(1);
  });

  test.each([1_000, 5_000, 20_000, 200_000])(
    'of arrays %i deep, for nothing may throw after the effect',
    (depth) => {
      expect(jsonSize(recordable(deep(depth), 256_000))).toBeGreaterThan(10);
    },
  );
});

describe('the memory of transcripts', () => {
  interface Branch {
    position: Position;
    messages: Message[];
    parent: Branch | null;
  }
  const root: Branch = { position: { count: 0, digest: EMPTY_DIGEST }, messages: [], parent: null };
  const asked = ({ position }: Branch): string => shortDigest(position.digest);
  let made = 0;
  const grow = (parent: Branch, count: number): Branch => {
    const { messages } = parent;
    let { digest } = parent.position;
    const all = [...messages];
    for (let i = 0; i < count; i++) {
      made += 1;
      const message: Message = {
        id: `m${made}`,
        role: 'user',
        created_at: '2025-01-01T00:00:00.000Z',
        blocks: [{ kind: 'text', text: `${made}` }],
      };
      digest = chainDigest(digest, toJson(message));
      all.push(message);
    }
    return { position: { count: all.length, digest }, messages: all, parent };
  };
  const act = fc.oneof(
    // A turn goes on from some branch, which a reset or a failed task may have made before.
    fc.record({
      do: fc.constant('turn' as const),
      run: fc.nat(1),
      from: fc.nat(30),
      count: fc.integer({ min: 1, max: 3 }),
    }),
    fc.record({ do: fc.constant('replace' as const), run: fc.nat(1), from: fc.nat(30) }),
    fc.record({ do: fc.constant('recall' as const), run: fc.nat(1), from: fc.nat(30) }),
  );

  test('serves exactly what was asked for, or nothing: never a branch that was discarded', () => {
    let served = 0;
    fc.assert(
      fc.property(
        fc.array(act, { maxLength: 30, size: 'max' }),
        fc.constantFrom(500, 2_000, 1_000_000),
        (acts, bytes) => {
          const memory = new TranscriptMemory(bytes);
          const runs: [Branch[], Branch[]] = [[root], [root]];
          for (const { run, from, ...it } of acts) {
            const branches = run === 0 ? runs[0] : runs[1];
            const branch = branches[from % branches.length] ?? root;
            const name = `run-${run}`;
            if (it.do === 'turn') {
              const next = grow(branch, it.count);
              branches.push(next);
              const messages = next.messages.slice(branch.position.count);
              memory.remember(name, { from: branch.position, to: next.position, messages });
            } else if (it.do === 'replace')
              memory.replace(name, { messages: branch.messages, base: 0 }, branch.position);
            else {
              const got = memory.recall(name, asked(branch));
              if (got === undefined) continue;
              served += 1;
              expect(got).toEqual({ messages: branch.messages, base: 0 });
              expect(memory.recall(name, 'another')).toBeUndefined();
              expect(memory.recall('run-of-others', asked(branch))?.messages.length ?? 0).toBe(0);
            }
          }
        },
      ),
      { numRuns: 1_000 },
    );
    expect(served).toBeGreaterThan(500);
  });

  test('has what a session in its normal course asks for: the last position, and those just before', () => {
    const memory = new TranscriptMemory(1_000_000);
    let branch = root;
    for (let turn = 0; turn < 20; turn++) {
      const next = grow(branch, 2);
      memory.remember('run', {
        from: branch.position,
        to: next.position,
        messages: next.messages.slice(branch.position.count),
      });
      expect(memory.recall('run', asked(next))?.messages).toEqual(next.messages);
      if (branch !== root) expect(memory.recall('run', asked(branch))?.messages).toEqual(branch.messages);
      branch = next;
    }
  });
});

describe('a failed request to a model', () => {
  const api = (
    statusCode: number | undefined,
    more: { cause?: unknown; headers?: Record<string, string>; isRetryable?: boolean } = {},
  ): APICallError =>
    new APICallError({
      message: 'failed',
      url: 'http://model.test',
      requestBodyValues: {},
      ...(statusCode === undefined ? {} : { statusCode }),
      ...(more.cause === undefined ? {} : { cause: more.cause }),
      ...(more.headers === undefined ? {} : { responseHeaders: more.headers }),
      ...(more.isRetryable === undefined ? {} : { isRetryable: more.isRetryable }),
    });
  const socket = (code: string): Error =>
    Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(code), { code }) });
  const aggregate = (code: string): Error =>
    new AggregateError([Object.assign(new Error(code), { code })], 'all failed');

  const down = { kind: 'down', billed: false } as const;

  const limited = { ...down, limited: true } as const;
  const rejected = { kind: 'rejected', billed: false } as const;
  const interrupted = { kind: 'interrupted', billed: true } as const;
  const invalid = { kind: 'invalid_response', billed: true } as const;

  test.each<[string, unknown, Omit<RequestFailure, 'message'>]>([
    ['400', api(400), rejected],
    ['401', api(401), rejected],
    ['403', api(403), rejected],
    ['404', api(404), rejected],
    ['413', api(413), rejected],
    ['422', api(422), rejected],
    ['408', api(408), interrupted],
    ['409', api(409), down],
    ['429', api(429), limited],
    ['429 with seconds', api(429, { headers: { 'retry-after': '7' } }), { ...limited, retryAfterMs: 7_000 }],
    [
      '429 with milliseconds',
      api(429, { headers: { 'retry-after-ms': '250', 'retry-after': '7' } }),
      { ...limited, retryAfterMs: 250 },
    ],
    [
      '429 with a date that is past',
      api(429, { headers: { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' } }),
      { ...limited, retryAfterMs: 0 },
    ],
    ['429 with words', api(429, { headers: { 'retry-after': 'soon' } }), limited],
    ['500', api(500), down],
    ['502', api(502), down],
    ['503', api(503), down],
    ['504', api(504), interrupted],
    ['522', api(522), interrupted],
    ['524', api(524), interrupted],
    ['529', api(529), down],
    [
      'a reply that cannot be read',
      api(200, { cause: new JSONParseError({ text: '{', cause: new Error('end') }) }),
      invalid,
    ],
    ['a reply that broke off', api(200, { cause: new Error('terminated') }), interrupted],
    ['a connection that was refused', api(undefined, { cause: socket('ECONNREFUSED') }), down],
    ['a host that is not found', api(undefined, { cause: socket('ENOTFOUND') }), down],
    ['all addresses refused', api(undefined, { cause: aggregate('ECONNREFUSED') }), down],
    ['a connection that was reset', api(undefined, { cause: socket('ECONNRESET') }), interrupted],
    ['a socket that hung up', socket('UND_ERR_SOCKET'), interrupted],
    ['a socket that was refused', socket('ECONNREFUSED'), down],
    ['a connect that timed out', socket('UND_ERR_CONNECT_TIMEOUT'), down],
    ['headers that timed out', socket('UND_ERR_HEADERS_TIMEOUT'), interrupted],
    ['a missing key', new LoadAPIKeyError({ message: 'no key' }), rejected],
    ['a tool that is not there', new NoSuchToolError({ toolName: 'x' }), invalid],
    ['an error event in the stream', { type: 'overloaded_error', message: 'overloaded' }, interrupted],
    ['a text', 'broken', interrupted],
    ['nothing', undefined, interrupted],
  ])('%s', (_name, error, expected) => {
    const { message, ...failure } = requestFailure(error);
    expect(failure).toEqual(expected);
    expect(message.length).toBeGreaterThan(0);
  });

  test('is classified, whatever was thrown', () => {
    const loop = new Error('loop');
    loop.cause = loop;
    const nested: { errors?: unknown[] } = {};
    nested.errors = [nested];
    const anything = fc.oneof(
      fc.anything({ withBigInt: true, withNullPrototype: true, maxDepth: 3 }),
      fc.constantFrom<unknown>(loop, nested, { a: nested }, Object.assign(new Error('e'), { cause: nested })),
    );
    fc.assert(
      fc.property(anything, (error) => {
        const { kind, message, billed } = requestFailure(error);
        expect(['down', 'rejected', 'invalid_response', 'interrupted']).toContain(kind);
        expect(typeof message).toBe('string');
        expect(message.length).toBeLessThanOrEqual(2_000);
        // What is not known to be free counts as billed.
        expect(billed).toBe(kind === 'interrupted' || kind === 'invalid_response');
      }),
      { numRuns: 2_000 },
    );
  });
});
