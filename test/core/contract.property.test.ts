/** Keys, plans and pages: small functions that much depends on. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { canonicalJson, jsonSize, sha256Hex } from '../../src/contract/json.ts';
import { argsDigest, baseKey, chainDigest, EMPTY_DIGEST, messageKey } from '../../src/contract/keys.ts';
import {
  defineAgent,
  defineTool,
  type IdempotencyScope,
  type JsonValue,
  LIMIT,
  type ToolCall,
} from '../../src/index.ts';
import { readPlan } from '../../src/session/plan.ts';
import { freshCall } from '../../src/session/state.ts';
import { pageOf } from '../../src/session/views.ts';
import './seed.ts';

const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>;
const words = fc.string({ minLength: 1, maxLength: 10 });
const TOOL = defineTool({ inputSchema: z.object({}), effect: 'read', execute: () => null });

type Identified = Parameters<typeof baseKey>[0];

describe('an idempotency key', () => {
  const tool = fc.stringMatching(/^[a-z][a-z_]{0,8}$/);
  const id = fc.oneof(words, fc.constantFrom('global', ':global', 'a', 'a:b'));
  const identified = fc.record({
    namespace: id,
    tool,
    scope: fc.constantFrom('call', 'message', 'session', 'global'),
    message: fc.nat(2),
    callId: fc.tuple(fc.nat(9), fc.nat(3)).map(([turn, n]) => `call_${turn}_${n}`),
    identity: json,
  });

  /** What makes two calls the same, in the words of the scopes. */
  type Numbered = Identified & { message: number };
  const keyOf = (call: Numbered): string =>
    call.scope === 'message' ? messageKey(baseKey(call), call.message) : baseKey(call);
  const same = (a: Numbered, b: Numbered): boolean =>
    a.scope === b.scope &&
    a.tool === b.tool &&
    canonicalJson(a.identity) === canonicalJson(b.identity) &&
    (a.scope === 'global' || a.namespace === b.namespace) &&
    (a.scope !== 'call' || a.callId === b.callId) &&
    (a.scope !== 'message' || a.message === b.message);

  test('is equal for the same call of its scope, and for no other', () => {
    const changed = fc.record({
      by: identified,
      keys: fc.subarray(['namespace', 'tool', 'scope', 'message', 'callId', 'identity'] as const),
    });
    fc.assert(
      fc.property(identified, changed, (a, { by, keys }) => {
        const b = { ...a };
        for (const key of keys) Object.assign(b, { [key]: by[key] });
        expect(keyOf(a) === keyOf(b), canonicalJson([a, b])).toBe(same(a, b));
      }),
      { numRuns: 3_000 },
    );
  });

  test('is of one call only, wherever colons stand in names and arguments', () => {
    const pieces = fc.constantFrom(
      ':',
      '"',
      '[',
      '{',
      '}',
      ']',
      ',',
      '\\',
      'a',
      'pay',
      'call_1_0',
      '1',
      'null',
    );
    const tangled = fc.array(pieces, { minLength: 1, maxLength: 9 }).map((some) => some.join(''));
    const value = fc.oneof(tangled, fc.constantFrom(1, null));
    const mixed = fc.record({
      namespace: tangled,
      tool: fc.constantFrom('pay', 'a', '1', '-1', 'null', 'call', 'call_1_0').filter(isToolName),
      scope: fc.constantFrom('session', 'call', 'global'),
      callId: fc.constantFrom('call_1_0', 'call_1_1'),
      identity: fc.oneof(
        value,
        fc.array(value, { maxLength: 4 }),
        fc.dictionary(tangled, value, { maxKeys: 3 }),
      ),
    });
    let colons = 0;
    fc.assert(
      fc.property(mixed, (call) => {
        const { tool, scope, identity } = call;
        const namespace = scope === 'global' ? '' : call.namespace;
        const callId = scope === 'call' ? call.callId : '';
        const text = [namespace, tool, ...(scope === 'call' ? [callId] : []), canonicalJson(identity)].join(
          ':',
        );
        expect(baseKey(call)).toBe(sha256Hex(text));
        expect(readings(text), text).toEqual([{ scope, namespace, tool, callId, identity }]);
        colons += text.split(':').length;
      }),
      { numRuns: 5_000 },
    );
    expect(colons).toBeGreaterThan(20_000);
  });

  test('of a session named global is not that of all sessions', () => {
    const of = { namespace: 'global', tool: 'pay', callId: 'call_1_0', identity: {} };
    expect(baseKey({ ...of, scope: 'session' })).not.toBe(baseKey({ ...of, scope: 'global' }));
  });

  test('of a session is the SHA-256 that the contract names', () => {
    const of = { namespace: 's', tool: 'pay', callId: 'call_1_0', identity: { b: 1, a: [2] } };
    // printf 's:pay:{"a":[2],"b":1}' | sha256sum
    expect(baseKey({ ...of, scope: 'session' })).toBe(SESSION_KEY);
  });

  test('does not depend on the order of keys; a digest of arguments tells tools apart', () => {
    expect(argsDigest('pay', { a: 1, b: 2 })).toBe(argsDigest('pay', { b: 2, a: 1 }));
    expect(argsDigest('pay', { a: 1 })).not.toBe(argsDigest('refund', { a: 1 }));
  });

  test('the chain of digests is another for every other transcript', () => {
    const digest = (messages: readonly JsonValue[]): string =>
      messages.reduce<string>((before, message) => chainDigest(before, message), EMPTY_DIGEST);
    fc.assert(
      fc.property(fc.array(json, { maxLength: 4 }), fc.array(json, { maxLength: 4 }), (a, b) => {
        expect(digest(a) === digest(b)).toBe(canonicalJson(a) === canonicalJson(b));
      }),
    );
  });
});

/** All calls whose key is made of a text. */
function readings(text: string): Identified[] {
  const parts = text.split(':');
  return parts.flatMap((last, i) => {
    const identity = canonical(parts.slice(i + 1).join(':'));
    if (identity === undefined) return [];
    const of = (scope: IdempotencyScope, at: number, callId: string): Identified[] => {
      const [namespace, tool = ''] = [parts.slice(0, at).join(':'), parts[at]];
      const isOne = at > 0 && isToolName(tool) && (scope === 'global') === (namespace === '');
      return isOne ? [{ scope, namespace, tool, callId, identity }] : [];
    };
    const ofCall = /^call_\d+_\d+$/.test(last) ? of('call', i - 1, last) : [];
    return [...of('session', i, ''), ...of('global', i, ''), ...ofCall];
  });
}

/** What a text is the canonical JSON of, if of anything. */
function canonical(text: string): JsonValue | undefined {
  try {
    const value = JSON.parse(text) as JsonValue;
    return canonicalJson(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether an agent can have a tool of a name. */
function isToolName(name: string): boolean {
  try {
    defineAgent({ name: 'a', model: 'a:b', instructions: 'a', tools: { [name]: TOOL } });
    return true;
  } catch {
    return false;
  }
}

describe('a plan', () => {
  const tools = ['look', 'pay', 'send'];
  const call = (name: string, kind: 'completed' | 'failed' | 'running', n: number): ToolCall => ({
    ...freshCall(`call_1_${n}`, { turn: 1, message: 1 }, name, {}),
    status: kind === 'failed' ? { kind, certain: true } : { kind },
  });
  const log = fc
    .array(fc.tuple(fc.constantFrom(...tools), fc.constantFrom('completed', 'failed', 'running')), {
      maxLength: 5,
    })
    .map((calls) => calls.map(([name, kind], n) => call(name, kind, n)));
  const step = fc.record(
    {
      id: fc.constantFrom('1', '2', '3'),
      title: words,
      postconditions: fc.array(words, { maxLength: 3 }),
      evidence: fc.array(
        fc.record({ postcondition: fc.integer({ min: -1, max: 3 }), tool: fc.constantFrom(...tools) }),
        {
          maxLength: 4,
        },
      ),
      status: fc.constantFrom('pending', 'in_progress', 'done'),
    },
    { requiredKeys: ['id', 'title'] },
  );

  test('says done only of what calls have shown, and keeps which', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 4 }), log, (steps, calls) => {
        const completed = new Set(
          calls.filter(({ status }) => status.kind === 'completed').map(({ name }) => name),
        );
        const shown = steps.every(
          ({ status, postconditions = [], evidence = [] }) =>
            status !== 'done' ||
            (postconditions.length > 0 &&
              postconditions.every((_, n) =>
                evidence.some((it) => it.postcondition === n && completed.has(it.tool)),
              )),
        );
        const distinct = new Set(steps.map(({ id }) => id)).size === steps.length;
        const read = readPlan({ steps }, calls);
        expect(read.ok, JSON.stringify(read)).toBe(shown && distinct);
        if (!read.ok) {
          expect(read.problem).toMatch(
            distinct ? /^step \d is not done: / : /^step \d is (listed twice|not done)/,
          );
          return;
        }
        for (const { evidence } of read.plan) {
          for (const { tool, call_id } of evidence) {
            expect(calls.find(({ id }) => id === call_id)).toMatchObject({
              name: tool,
              status: { kind: 'completed' },
            });
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('is refused in words, whatever the model sends', () => {
    fc.assert(
      fc.property(json, (args) => {
        const read = readPlan(args, []);
        if (!read.ok) expect(read.problem).toMatch(/./);
      }),
    );
    expect(readPlan({ steps: [{ id: '', title: 'x' }] }, [])).toMatchObject({ ok: false });
    expect(readPlan({}, [])).toMatchObject({ ok: false, problem: expect.stringContaining('steps') });
  });
});

describe('a page', () => {
  test('is the entries before an index, at most as many as asked', () => {
    const index = fc.option(fc.oneof(fc.integer({ min: -3, max: 40 }), fc.double()), { nil: undefined });
    fc.assert(
      fc.property(fc.array(json, { maxLength: 30 }), index, index, (items, before, limit) => {
        const input = {
          ...(before === undefined ? {} : { before }),
          ...(limit === undefined ? {} : { limit }),
        };
        const page = pageOf(items, input);
        expect(page.total).toBe(items.length);
        expect(Number.isInteger(page.first) && page.first >= 0 && page.first <= items.length).toBe(true);
        expect(page.items).toEqual(items.slice(page.first, page.first + page.items.length));
        if (limit !== undefined && limit >= 0) expect(page.items.length).toBeLessThanOrEqual(limit);
        if (before === undefined && limit === undefined) expect(page.items).toEqual(items);
      }),
      { numRuns: 1_000 },
    );
  });

  test('has defaults for what is no number', () => {
    expect(pageOf([1, 2, 3], { before: Number.NaN, limit: Number.NaN })).toEqual(pageOf([1, 2, 3]));
  });

  test('leads through the whole list, in pages that a query can answer', () => {
    const sized = fc
      .array(fc.nat(900_000), { maxLength: 8 })
      .map((sizes) => sizes.map((size) => 'x'.repeat(size)));
    fc.assert(
      fc.property(sized, fc.integer({ min: 1, max: 5 }), (items, limit) => {
        const seen: string[] = [];
        for (let before = items.length; before > 0; ) {
          const page = pageOf(items, { before, limit });
          expect(page.items.length).toBeGreaterThan(0);
          expect(page.items.length === 1 || jsonSize(page.items) <= LIMIT.queryResult + 100).toBe(true);
          seen.unshift(...page.items);
          before = page.first;
        }
        expect(seen.length).toBe(items.length);
        expect(seen.every((item, i) => item === items[i])).toBe(true);
      }),
      { numRuns: 30 },
    );
  });
});

const SESSION_KEY = '3a92347599ef2bf482be9c86c4683b4e8f84bcc2119945a9d3733746771efefe';
