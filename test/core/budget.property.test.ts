/** Money: whole billionths of a dollar, reserved before they are spent. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toTools } from '../../src/activities/prompt.ts';
import { whatHappened } from '../../src/history/what-happened.ts';
import type { Manifest, ModelManifest, SessionState, ToolManifest } from '../../src/index.ts';
import { advance } from '../../src/session/advance.ts';
import { chargeLost, chargeReply, exceeded, usd, worstCase } from '../../src/session/budget.ts';
import { initialState } from '../../src/session/initial.ts';
import { setManifest } from '../../src/session/manifest.ts';
import { MOMENT, manifestOf } from './checker/scenario.ts';
import './seed.ts';

/** Prices as providers write them: dollars for a million tokens, to a millionth of a dollar. */
const price = fc
  .integer({ min: 0, max: 200_000_000 })
  .map((micro) => ({ micro, dollars: micro / 1_000_000 }));
const tokens = fc.nat(2_000_000);

const BARE_TOOL: ToolManifest = {
  name: 'bare',
  description: '',
  inputSchema: {},
  effect: 'read',
  scope: 'call',
  ttlMs: 0,
  verify: false,
  timeoutMs: 1,
  settleMs: 0,
  maxAttempts: 1,
  approval: { expiresMs: null, onExpiry: 'reject' },
};

function session(models: ModelManifest[], text = 'hello'): SessionState {
  const message = { text };
  const state = initialState(
    { sessionId: 's', runId: 'r', firstRunId: 'r' },
    { agent: 'clerk', message },
    MOMENT,
  );
  state.manifest = { ...manifestOf({ name: '', tools: {}, replies: [], may: {} }), models };
  return state;
}

function model(input: number, output: number, maxOutputTokens = 1_000): ModelManifest {
  return { id: 'm', maxOutputTokens, price: { inputPerMillion: input, outputPerMillion: output } };
}

/** Tokens at a price, exactly, rounded up to a billionth of a dollar. */
function exact(count: number, micro: number): number {
  return Number((BigInt(count) * BigInt(micro) + 999n) / 1_000n);
}

test('tokens that were read from or written to a cache cost what they cost, and are reserved at the dearest price', () => {
  const spent = { turns: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, nanoUsd: 0, activeMs: 0 };
  const state = { budget: { spent } } as SessionState;
  const prices = {
    inputPerMillion: 3,
    outputPerMillion: 15,
    cacheReadPerMillion: 0.3,
    cacheWritePerMillion: 3.75,
  };
  const usage = { inputTokens: 1_000, outputTokens: 10, cachedInputTokens: 600, cacheWriteTokens: 300 };
  chargeReply(state, { id: 'm', maxOutputTokens: 10, price: prices }, usage, { nanoUsd: 0, tokens: 0 });
  expect(spent.nanoUsd).toBe(100 * 3_000 + 600 * 300 + 300 * 3_750 + 10 * 15_000);
});

test('a reply costs its tokens at their prices, to the billionth of a dollar', () => {
  fc.assert(
    fc.property(tokens, tokens, price, price, (inputTokens, outputTokens, inPrice, outPrice) => {
      const of = model(inPrice.dollars, outPrice.dollars);
      const state = session([of]);
      chargeReply(state, of, { inputTokens, outputTokens }, { nanoUsd: 0, tokens: 0 });
      expect(state.budget.spent.nanoUsd).toBe(
        exact(inputTokens, inPrice.micro) + exact(outputTokens, outPrice.micro),
      );
      expect(state.budget.spent).toMatchObject({ inputTokens, outputTokens });
    }),
    { numRuns: 2_000 },
  );
});

test('what is reserved covers any reply of any model within its bounds', () => {
  const models = fc.array(fc.tuple(price, price, fc.integer({ min: 1, max: 100_000 })), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(
      models,
      fc.nat(3),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (list, which, a, b) => {
        const manifests = list.map(([input, output, max]) => model(input.dollars, output.dollars, max));
        const state = session(manifests);
        advance(state, [], MOMENT);
        const flight = state.inFlight.find(({ kind }) => kind === 'model');
        const reserved = flight?.reserved ?? { nanoUsd: -1, tokens: -1 };
        const answering = manifests[which % manifests.length] ?? model(0, 0);
        const bound = reserved.tokens - Math.max(...manifests.map(({ maxOutputTokens }) => maxOutputTokens));
        const usage = {
          inputTokens: Math.floor(bound * a),
          outputTokens: Math.floor(answering.maxOutputTokens * b),
        };
        chargeReply(state, answering, usage, reserved);
        expect(state.budget.spent.nanoUsd).toBeLessThanOrEqual(reserved.nanoUsd);
        expect(usage.inputTokens + usage.outputTokens).toBeLessThanOrEqual(reserved.tokens);
      },
    ),
  );
});

test('a prompt is never more tokens than it is reserved for, at a token a byte', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 200 }), (text) => {
      const state = session([model(1, 1, 7)], text);
      advance(state, [], MOMENT);
      const bytes = Buffer.byteLength(text) + Buffer.byteLength(state.manifest?.instructions ?? '');
      expect(worstCase(state).tokens).toBeGreaterThanOrEqual(bytes + 7);
    }),
  );
});

test('what a prompt is reserved for has room for all tools that are sent, the plan`s own among them', () => {
  const schema = fc.dictionary(fc.string(), fc.string({ unit: 'binary' }));
  fc.assert(
    fc.property(schema, fc.string({ unit: 'binary' }), fc.boolean(), (properties, description, plan) => {
      const state = session([model(1, 1, 7)]);
      const inputSchema = { type: 'object', properties };
      const tools = { bare: { ...BARE_TOOL, description, inputSchema } };
      const manifest: Manifest = { ...(state.manifest as Manifest), tools, plan };
      state.manifest = manifest;
      advance(state, [], MOMENT);
      const sent = `${manifest.instructions + JSON.stringify(toTools(manifest))}hello`;
      expect(worstCase(state).tokens).toBeGreaterThanOrEqual(Buffer.byteLength(sent) + 7);
    }),
  );
});

test('uncounted and lost requests are charged as reserved', () => {
  fc.assert(
    fc.property(tokens, tokens, fc.nat(3), (nanoUsd, held, times) => {
      const state = session([model(1, 1)]);
      chargeReply(state, model(1, 1), { inputTokens: null, outputTokens: 5 }, { nanoUsd, tokens: held });
      chargeLost(state.budget.spent, times, { nanoUsd, tokens: held });
      expect(state.budget.spent).toMatchObject({
        nanoUsd: nanoUsd * (1 + times),
        inputTokens: held * (1 + times),
      });
    }),
  );
});

test('a request that was under way when its run was left by a rewind is charged as reserved', () => {
  const past = session([model(1, 1)]);
  const last = structuredClone(past);
  last.budget = { ...last.budget, reserved: { nanoUsd: 7, tokens: 11 } };
  last.budget.spent.nanoUsd = 5;
  const lost = { nanoUsd: 12, inputTokens: 11, lostReplies: 1, lostNanoUsd: 7 };
  expect(whatHappened(past, last).spent).toEqual({ ...last.budget.spent, ...lost });
  expect(whatHappened(past, past).spent).toEqual(past.budget.spent);
});

test('a list of models that has changed is asked from its first on', () => {
  const state = session([model(1, 1), model(1, 1)]);
  state.fromModel = 1;
  setManifest(state, { ...(state.manifest as Manifest), models: [model(1, 1)] }, MOMENT);
  const { commands } = advance(state, [], MOMENT);
  expect(commands).toMatchObject([{ kind: 'model', input: expect.not.objectContaining({ fromModel: 1 }) }]);
});

test('a cap is exceeded by a billionth of a dollar more, and not by exactly itself', () => {
  const none = { nanoUsd: 0, tokens: 0, turns: 0, toolCalls: 0 };
  fc.assert(
    fc.property(fc.nat(2_000_000_000), fc.nat(2_000_000_000), (spent, further) => {
      const state = session([model(1, 1)]);
      state.budget.spent.nanoUsd = spent;
      state.budget.limits = { usd: usd(spent + further) };
      expect(exceeded(state, { ...none, nanoUsd: further })).toBeNull();
      expect(exceeded(state, { ...none, nanoUsd: further + 1 })).toMatchObject({
        cap: 'usd',
        atLeast: usd(spent + further + 1),
      });
    }),
  );
});
