import type { LanguageModelV3, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { type RequestResult, requestModel } from '../../src/activities/request-model.ts';
import { type Model, resolveAgent } from '../../src/agent/index.ts';
import { defineAgent, defineTool } from '../../src/index.ts';

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

async function ask(model: Model, abortSignal = new AbortController().signal): Promise<RequestResult> {
  const look = defineTool({ inputSchema: z.object({ id: z.string() }), effect: 'read', execute: () => '' });
  const agent = await resolveAgent(defineAgent({ name: 'a', model, instructions: 'Help.', tools: { look } }));
  return requestModel({
    agent,
    model,
    maxOutputTokens: 100,
    messages: [
      { id: 'msg_0', role: 'user', created_at: '2026-01-01', blocks: [{ kind: 'text', text: 'Hi' }] },
    ],
    summarize: false,
    abortSignal,
    onText: () => {},
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

test('a stream that ends without a finish is no reply, and may have been billed', async () => {
  const result = await ask(streaming(...text('I was about to')));
  expect(result).toMatchObject({ ok: false, failure: { kind: 'invalid_response', billed: true } });
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
