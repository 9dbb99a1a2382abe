import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import { expect, test } from 'vitest';
import * as z from 'zod';
import type { RequestResult } from '../../src/activities/reply-collector.ts';
import { requestModel } from '../../src/activities/request-model.ts';
import { type Model, resolveAgent } from '../../src/agent/index.ts';
import type { Usage } from '../../src/contract/model-call.ts';
import { type AgentOptions, defineAgent, defineTool } from '../../src/index.ts';

type Part = LanguageModelV3StreamPart;

const usage = {
  inputTokens: { total: 7, noCache: 3, cacheRead: 4, cacheWrite: undefined },
  outputTokens: { total: 2, text: undefined, reasoning: undefined },
};
const finish: Part = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage };

function text(delta: string): Part[] {
  return [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta },
    { type: 'text-end', id: 't' },
  ];
}

function call(toolCallId: string, toolName: string, input: string): Part {
  return { type: 'tool-call', toolCallId, toolName, input };
}

function modelOf(doStream: LanguageModelV3['doStream']): LanguageModelV3 {
  const doGenerate = (): never => {
    throw new Error('only streams are asked for');
  };
  return {
    specificationVersion: 'v3',
    provider: 'test',
    modelId: 'test',
    supportedUrls: {},
    doGenerate,
    doStream,
  };
}

function streaming(...parts: Part[]): LanguageModelV3 {
  return modelOf(async () => ({
    stream: new ReadableStream({
      start: (controller) => {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    }),
  }));
}

async function ask(
  model: Model,
  abortSignal = new AbortController().signal,
  options: Partial<AgentOptions> = {},
): Promise<RequestResult> {
  const look = defineTool({ inputSchema: z.object({ id: z.string() }), effect: 'read', execute: () => '' });
  const agent = await resolveAgent(
    defineAgent({ name: 'a', model, instructions: 'Help.', tools: { look }, ...options }),
  );
  return requestModel({
    agent,
    instructions: 'Help.',
    model,
    maxOutputTokens: 100,
    messages: [
      { id: 'msg_0', role: 'user', created_at: '2026-01-01', blocks: [{ kind: 'text', text: 'Hi' }] },
    ],
    files: new Map(),
    mode: 'reply',
    abortSignal,
    onDelta: () => {},
  });
}

test('a reply has its text, its calls and what the provider counted', async () => {
  const result = await ask(
    streaming(...text('I look.'), call('x', 'look', '{"id":"1"}'), call('y', 'look', ' '), finish),
  );
  expect(result).toEqual({
    ok: true,
    blocks: [{ kind: 'text', text: 'I look.' }],
    calls: [
      { name: 'look', args: { id: '1' }, unreadable: false },
      { name: 'look', args: {}, unreadable: false },
    ],
    finishReason: 'stop',
    usage: { inputTokens: 7, outputTokens: 2, cachedInputTokens: 4 },
  });
});

test('arguments that are not JSON are kept as they came', async () => {
  const result = await ask(streaming(call('x', 'look', '{"id":'), finish));
  expect(result).toMatchObject({ calls: [{ args: '{"id":', unreadable: true }] });
});

test('a model of version 2 of the interface is read alike', async () => {
  const old = {
    ...streaming(...text('Done.'), {
      type: 'finish',
      finishReason: 'stop',
      usage: { inputTokens: 7, outputTokens: 2, totalTokens: 9, cachedInputTokens: 4 },
    } as unknown as Part),
    specificationVersion: 'v2',
  } as unknown as Model;
  expect(await ask(old)).toMatchObject({
    ok: true,
    blocks: [{ kind: 'text', text: 'Done.' }],
    finishReason: 'stop',
    usage: { inputTokens: 7, outputTokens: 2, cachedInputTokens: 4 },
  });
});

const counted = (
  input: number | undefined,
  output: number | undefined,
  raw?: Record<string, number>,
): LanguageModelV3Usage => ({
  inputTokens: { total: input, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: output, text: undefined, reasoning: undefined },
  ...(raw === undefined ? {} : { raw }),
});

test.each<[string, unknown, Usage]>([
  [
    'a total that holds more, as of thoughts, is believed',
    counted(10, 5, { prompt_tokens: 10, completion_tokens: 5, total_tokens: 215 }),
    { inputTokens: 10, outputTokens: 205 },
  ],
  [
    'so is one of version 2 of the interface',
    { inputTokens: 10, outputTokens: 5, totalTokens: 215 },
    { inputTokens: 10, outputTokens: 205 },
  ],
  [
    'a total that holds less is not',
    counted(10, 5, { total_tokens: 12 }),
    { inputTokens: 10, outputTokens: 5 },
  ],
  ['nor one that is no count', counted(10, 5, { total_tokens: 99.5 }), { inputTokens: 10, outputTokens: 5 }],
  ['a prompt of no tokens was not counted', counted(0, 5), { inputTokens: null, outputTokens: 5 }],
  ['whatever the total', counted(0, 0, { total_tokens: 215 }), { inputTokens: null, outputTokens: 0 }],
  [
    'an output without a count was not counted',
    counted(10, undefined),
    { inputTokens: 10, outputTokens: null },
  ],
])('usage: %s', async (_, given, read) => {
  const end = { ...finish, usage: given } as Part;
  expect(await ask(streaming(...text('Done.'), end))).toMatchObject({ ok: true, usage: read });
});

test('a stream that ends without a finish is no reply, and may have been billed', async () => {
  const result = await ask(streaming(...text('I was about to')));
  expect(result).toMatchObject({ ok: false, failure: { kind: 'invalid_response', billed: true } });
});

test.each<[string, (n: number) => Part[], RegExp]>([
  [
    'a text',
    () => [{ type: 'text-delta', id: 't', delta: 'y'.repeat(20_000) }],
    /^the reply has over 2000000 bytes/,
  ],
  [
    'a thought',
    () => [{ type: 'reasoning-delta', id: 'r', delta: 'é'.repeat(10_000) }],
    /over 2000000 bytes/,
  ],
  [
    "a call's arguments",
    () => [{ type: 'tool-input-delta', id: 'x', delta: ' '.repeat(20_000) }],
    /over 2000000 bytes/,
  ],
  ['a list of calls', (n) => [call(`x${n}`, 'look', '{}')], /^the reply has over 128 tool calls/],
])('%s without an end is left where it can be no reply any more', async (_, next, message) => {
  let read = 0;
  let left = false;
  const endless = modelOf(async () => ({
    stream: new ReadableStream<Part>({
      start: (controller) => {
        controller.enqueue({ type: 'text-start', id: 't' });
        controller.enqueue({ type: 'reasoning-start', id: 'r' });
      },
      pull: (controller) => {
        read += 1;
        for (const part of next(read)) controller.enqueue(part);
      },
      cancel: () => {
        left = true;
      },
    }),
  }));
  const result = await ask(endless);
  expect(result).toMatchObject({
    ok: false,
    failure: { kind: 'invalid_response', message: expect.stringMatching(message), billed: true },
  });
  expect(left).toBe(true);
  expect(read).toBeLessThan(140);
});

test('two calls of one id are no reply, for nobody can tell what was asked', async () => {
  const result = await ask(
    streaming(call('x', 'look', '{"id":"1"}'), call('x', 'look', '{"id":"2"}'), finish),
  );
  expect(result).toEqual({
    ok: false,
    failure: { kind: 'invalid_response', message: 'two tool calls have the id x', billed: true },
  });
});

test.each<[string, Part[]]>([
  ['nothing', []],
  ['an empty text', text('')],
  [
    'thoughts alone',
    [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'Hm.' },
      { type: 'reasoning-end', id: 'r' },
    ],
  ],
])('a reply of %s is none', async (_, parts) => {
  expect(await ask(streaming(...parts, finish))).toEqual({
    ok: false,
    failure: {
      kind: 'invalid_response',
      message: 'the reply has neither text nor tool calls',
      billed: true,
    },
  });
});

test('what an agent sets for its model reaches it, and nothing else does', async () => {
  const sent: LanguageModelV3CallOptions[] = [];
  const model = modelOf((options) => {
    sent.push(options);
    return streaming(...text('Done.'), finish).doStream(options);
  });
  const set = { temperature: 0.3, providerOptions: { openai: { reasoningEffort: 'low' } } };
  await ask(model, undefined, set);
  await ask(model);
  expect(sent).toMatchObject([{ ...set, maxOutputTokens: 100 }, { maxOutputTokens: 100 }]);
  expect(sent[1]).not.toHaveProperty('temperature');
  expect(sent[1]).not.toHaveProperty('providerOptions');
});

test('a model that pays no heed to its signal is left', async () => {
  const abort = new AbortController();
  const deaf = modelOf(async () => ({
    stream: new ReadableStream({
      start: (controller) => {
        for (const part of text('So far')) controller.enqueue(part);
      },
      pull: () => abort.abort(new Error('paused')),
    }),
  }));
  const result = await ask(deaf, abort.signal);
  expect(result).toEqual({ ok: false, failure: { kind: 'interrupted', message: 'paused', billed: true } });
});
