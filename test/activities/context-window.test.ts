/** What providers say of a prompt that is too large, what Anthropic caches, and which windows are known. */
import { APICallError, type LanguageModelV3Message } from '@ai-sdk/provider';
import { expect, test } from 'vitest';
import { compact } from '../../src/activities/compact.ts';
import { requestFailure } from '../../src/activities/model-errors.ts';
import { withBreakpoints } from '../../src/activities/prompt.ts';
import { TranscriptMemory } from '../../src/activities/transcript-memory.ts';
import { chooseCompaction, contextWindowPart } from '../../src/agent/context-window.ts';
import { resolveAgent } from '../../src/agent/index.ts';
import type { ModelResult } from '../../src/contract/model-call.ts';
import { bytesOf, cutOf, summaryTexts } from '../../src/contract/view.ts';
import { type AgentOptions, defineAgent, type Message } from '../../src/index.ts';
import { thrown } from '../support/thrown.ts';

function refusal(message: string, statusCode: number, responseBody = ''): APICallError {
  return new APICallError({ message, statusCode, responseBody, url: 'http://x', requestBodyValues: {} });
}

test.each<[string, Error]>([
  ['OpenAI', refusal('Your input exceeds the limit.', 400, '{"error":{"code":"context_length_exceeded"}}')],
  ['OpenAI in words', refusal("This model's maximum context length is 128000 tokens.", 400)],
  ['Anthropic', refusal('prompt is too long: 210000 tokens > 200000 maximum', 400)],
  [
    'Anthropic with max_tokens',
    refusal('input length and `max_tokens` exceed context limit: 199 + 9 > 200', 400),
  ],
  ['Google', refusal('The input token count (9) exceeds the maximum number of tokens allowed (8).', 400)],
  [
    'Mistral',
    refusal('Prompt contains 40000 tokens, too large for model with 32768 maximum context length', 422),
  ],
  ['Bedrock', refusal('Input is too long for requested model.', 400)],
  [
    'xAI',
    refusal("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 400),
  ],
  ['llama.cpp', refusal('the request exceeds the available context size', 500)],
  ['a stream', Object.assign(new Error('too much'), { code: 'context_length_exceeded' })],
])('a prompt that %s refuses as too large is known as such, and costs nothing', (_, error) => {
  expect(requestFailure(error)).toMatchObject({ kind: 'context_window', billed: false });
});

test.each<[string, Error, string]>([
  ['a limit of tokens a minute', refusal('Request too large for gpt-4o: context window', 429), 'down'],
  [
    'a body that repeats the prompt',
    refusal('Bad request', 400, 'you said: my context window broke'),
    'rejected',
  ],
  ['a bad key', refusal('Incorrect API key', 401), 'rejected'],
])('%s is not a prompt that is too large', (_, error, kind) => {
  expect(requestFailure(error).kind).toBe(kind);
});

const prompt: LanguageModelV3Message[] = [
  { role: 'system', content: 'Help.' },
  { role: 'user', content: [{ type: 'text', text: 'a' }] },
  { role: 'assistant', content: [{ type: 'text', text: 'b' }] },
  { role: 'user', content: [{ type: 'text', text: 'c' }] },
];

test('Anthropic is told what to cache: the instructions, the last prompt and this one', () => {
  const marks = (provider: string, specificationVersion = 'v3'): boolean[] =>
    withBreakpoints(prompt, { provider, specificationVersion }).map(
      ({ providerOptions }) => providerOptions !== undefined,
    );
  expect(marks('anthropic.messages')).toEqual([true, true, false, true]);
  expect(marks('vertex.anthropic.messages')).toEqual([true, true, false, true]);
  expect(marks('openai.responses')).toEqual([false, false, false, false]);
  expect(marks('anthropic.messages', 'v2')).toEqual([false, false, false, false]);
  expect(
    withBreakpoints(prompt, { provider: 'anthropic.messages', specificationVersion: 'v3' }).at(-1),
  ).toMatchObject({
    providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } },
  });
});

const of = (modelId: string, maxOutputTokens = 4_000): { modelId: string; maxOutputTokens: number } => ({
  modelId,
  maxOutputTokens,
});

test('the window of a known model is known, and of several the smallest counts', () => {
  expect(contextWindowPart(undefined, [of('claude-sonnet-4-5')])).toEqual({
    contextWindow: { compactAt: 156_800, keep: 39_200 },
  });
  expect(contextWindowPart(undefined, [of('claude-sonnet-4-5'), of('openai/gpt-4o')])).toEqual({
    contextWindow: { compactAt: 99_200, keep: 24_800 },
  });
  expect(contextWindowPart(undefined, [of('my-own')])).toEqual({ contextWindow: { keep: 8_000 } });
  expect(contextWindowPart({ tokens: 10_000, compactAt: 0.5, keep: 500 }, [of('my-own')])).toEqual({
    contextWindow: { compactAt: 3_000, keep: 500 },
  });
  expect(contextWindowPart(false, [of('gpt-4o')])).toEqual({});
});

test('a session on Anthropic knows what writing to the cache costs', async () => {
  const model = { provider: 'anthropic.messages', modelId: 'claude-x', specificationVersion: 'v3' } as never;
  const price = { inputPerMillion: 4, outputPerMillion: 15 };
  const { manifest } = await resolveAgent(
    defineAgent({ name: 'a', instructions: 'Help.', model: { model, price } }),
  );
  expect(manifest.models[0]?.price).toEqual({ ...price, cacheReadPerMillion: 0.4, cacheWritePerMillion: 5 });
});

test.each<[object | boolean, string]>([
  [{ token: 1 }, 'contextWindow.token is unknown'],
  [{ tokens: 0 }, 'contextWindow.tokens is 0'],
  [{ compactAt: 2 }, 'contextWindow.compactAt is 2'],
  [{ keep: 0.5 }, 'contextWindow.keep is 0.5'],
  [{ tokens: 1_000, keep: 201 }, 'contextWindow.keep is 201: write at most a quarter'],
  [{ compact: 'no' }, 'contextWindow.compact is not a function'],
  [true, 'contextWindow is true: write an object, or false'],
])('contextWindow %j is refused by name', (contextWindow, message) => {
  const options = {
    name: 'a',
    model: 'x:y',
    instructions: 'Help.',
    contextWindow,
  } as unknown as AgentOptions;
  expect(thrown(() => defineAgent(options))).toMatchObject({ message: expect.stringContaining(message) });
});

function said(id: string, role: Message['role'] = 'user'): Message {
  return { id, role, created_at: '', blocks: [{ kind: 'text', text: id }] };
}

test.each<[string, unknown, string]>([
  [
    'throws',
    () => {
      throw new Error('no idea');
    },
    'failed: no idea',
  ],
  ['returns nothing', () => undefined, 'must return { keepFrom, summary }'],
  ['cuts at the beginning', () => ({ keepFrom: 0 }), 'returned keepFrom 0: write one of 1, so that'],
  ['returns a blank summary', () => ({ summary: ' ' }), 'returned a summary that is no text'],
])('a rule that %s says so', async (_, compact, problem) => {
  const agent = { name: 'a', contextWindow: { compact } } as never;
  const view = [said('a'), said('b', 'assistant')];
  expect(await chooseCompaction(agent, view, 10)).toEqual({
    ok: false,
    problem: `contextWindow.compact of a ${problem}${problem.endsWith('that') ? ' calls stay with their results' : ''}`,
  });
});

test("a worker's memory lets go of what a summary stands for", () => {
  const memory = new TranscriptMemory(1_000_000);
  const at = (count: number): { count: number; digest: string } => ({
    count,
    digest: `digest-${count}`.padEnd(40, '0'),
  });
  memory.remember('s', {
    from: { count: 0, digest: '' },
    to: at(4),
    messages: ['a', 'b', 'c', 'd'].map((id) => said(id)),
  });
  const summary = { ...said('s'), summary: { from: 0, before: 2, bytes: 1 } };
  memory.remember('s', { from: at(4), to: at(5), messages: [summary] });
  expect(memory.recall('s', at(5).digest)).toMatchObject({
    base: 2,
    messages: [{ id: 'c' }, { id: 'd' }, { id: 's' }],
  });
  expect(memory.recall('s', at(4).digest)).toBeUndefined();
  memory.remember('s', { from: at(5), to: at(6), messages: [said('e')] });
  expect(memory.recall('s', at(6).digest)?.messages.map(({ id }) => id)).toEqual(['c', 'd', 's', 'e']);
  expect(memory.recall('s', at(5).digest)?.messages).toHaveLength(3);
});

test('the message that is being answered stays word for word until it is answered', async () => {
  const reply: ModelResult = {
    kind: 'reply',
    blocks: [{ kind: 'text', text: 'So far.' }],
    calls: [],
    usage: { inputTokens: 1, outputTokens: 1 },
  };
  const asked: number[] = [];
  const run = async (view: readonly Message[]): Promise<ModelResult> =>
    compact(
      async (messages) => {
        asked.push(messages.length);
        return reply;
      },
      { agent: { definition: { name: 'a' } } as never, input: { keep: 60 }, messages: view, base: 10, view },
    );
  const call = said('c'.repeat(40), 'assistant');
  const view = [said('first'), said('b', 'assistant'), said('second'), call, said('r', 'tool')];
  expect(await run([...view, { ...call }, said('r', 'tool')])).toMatchObject({
    before: 15,
    verbatim: ['first'],
    open: 'second',
    text: 'So far.',
  });
  expect(asked).toEqual([6]);
  // The next summary has it from the one before, until the user says something else.
  const blocks = summaryTexts(15, 'So far.', { verbatim: ['first'], open: 'second' }).map((text) => ({
    kind: 'text' as const,
    text,
  }));
  const summary = { ...said('s'), blocks, summary: { from: 0, before: 15, bytes: 0 } };
  const more = said('m'.repeat(200), 'assistant');
  expect(await run([summary, more, { ...call }, said('r', 'tool')])).toMatchObject({ open: 'second' });
  const later = await run([summary, more, said('third'), { ...call }]);
  expect(later).toMatchObject({ verbatim: ['first'] });
  expect(later).not.toHaveProperty('open', 'second');
});

test('an image counts in a view as in the budget', () => {
  const image = { kind: 'file' as const, media_type: 'image/png', url: 'https://x.example/a.png' };
  const view = [{ ...said('a'), blocks: [image] }, said('b', 'assistant'), said('c')];
  expect(bytesOf(view)).toBeGreaterThan(5_000);
  expect(cutOf(view, 1_000)).toBe(2);
});
