import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, type LanguageModel, type ModelMessage, stepCountIs, streamText, tool } from 'ai';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  estimateTokens,
  type Script,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedRequest,
  scriptedTurns,
  startScriptedModel,
} from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';

const started: ScriptedModel[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((model) => model.stop()));
});

async function start(script: Script, options: Partial<ScriptedModelOptions> = {}): Promise<ScriptedModel> {
  const model = await startScriptedModel({ script, ...options });
  started.push(model);
  return model;
}

const clients: Record<string, (url: string) => LanguageModel> = {
  'openai-compatible': (baseURL) =>
    createOpenAICompatible({ name: 'scripted', baseURL, includeUsage: true })('test-model'),
  openai: (baseURL) => createOpenAI({ baseURL, apiKey: 'unused' }).chat('test-model'),
};
const compatible = (url: string): LanguageModel =>
  createOpenAICompatible({ name: 'scripted', baseURL: url })('m');

const lookUp = tool({
  description: 'Look up an order',
  inputSchema: z.object({ id: z.string() }),
  execute: ({ id }) => ({ id, cents: 100 * Number(id) }),
});

describe.each(Object.entries(clients))('through the %s client', (_name, client) => {
  test('a text comes whole, with the usage that the script gives', async () => {
    const usage = { inputTokens: 11, outputTokens: 7, reasoningTokens: 2, cachedInputTokens: 3 };
    const { url } = await start(() => ({ text: 'Good morning.', usage }));
    const result = await generateText({ model: client(url), prompt: 'Hello', maxRetries: 0 });
    expect(result.text).toBe('Good morning.');
    expect(result.finishReason).toBe('stop');
    expect(result.usage).toMatchObject({ inputTokens: 11, outputTokens: 7, totalTokens: 18 });
    expect(result.usage.outputTokenDetails.reasoningTokens).toBe(2);
    expect(result.usage.inputTokenDetails.cacheReadTokens).toBe(3);
  });

  test('a text is streamed in its pieces, and the usage comes at the end', async () => {
    const { url } = await start(() => ({
      text: 'Déjà vu — 🎈🎈 twice',
      usage: { outputTokens: 9 },
      chunks: 4,
    }));
    const result = streamText({ model: client(url), prompt: 'Hello', maxRetries: 0 });
    const pieces: string[] = [];
    for await (const piece of result.textStream) pieces.push(piece);
    expect(pieces).toHaveLength(4);
    expect(pieces.join('')).toBe('Déjà vu — 🎈🎈 twice');
    expect(pieces.map((piece) => Buffer.from(piece).toString())).toEqual(pieces);
    expect((await result.usage).outputTokens).toBe(9);
    expect(await result.finishReason).toBe('stop');
  });

  test.each(['generate', 'stream'])(
    'parallel tool calls run and their results come back (%s)',
    async (way) => {
      const seen: ScriptedRequest[] = [];
      const { url } = await start((request) => {
        seen.push(request);
        return request.assistantCount === 0
          ? {
              text: 'Let me see.',
              toolCalls: [1, 2].map((id) => ({ name: 'lookUp', args: { id: `${id}` } })),
            }
          : { text: JSON.stringify(request.toolResults.map(({ value }) => value)) };
      });
      const input = {
        model: client(url),
        system: 'Be kind.',
        prompt: 'Orders 1 and 2',
        tools: { lookUp },
        stopWhen: stepCountIs(3),
        maxRetries: 0,
      };
      const text = way === 'generate' ? (await generateText(input)).text : await streamText(input).text;

      expect(text).toBe('[{"id":"1","cents":100},{"id":"2","cents":200}]');
      expect(seen).toHaveLength(2);
      const [first, second] = seen;
      expect(first).toMatchObject({
        lastUserText: 'Orders 1 and 2',
        assistantCount: 0,
        stepInTurn: 0,
        repeat: 0,
      });
      expect(first?.messages.map(({ role, text }) => [role, text])).toEqual([
        ['system', 'Be kind.'],
        ['user', 'Orders 1 and 2'],
      ]);
      expect(first?.tools).toEqual([
        {
          name: 'lookUp',
          description: 'Look up an order',
          parameters: expect.objectContaining({ type: 'object', required: ['id'] }) as unknown,
        },
      ]);
      expect(second).toMatchObject({ assistantCount: 1, stepInTurn: 1, stream: way === 'stream' });
      const [called] = second?.messages.filter(({ role }) => role === 'assistant') ?? [];
      expect(called?.text).toBe('Let me see.');
      expect(called?.toolCalls.map(({ name, args }) => [name, args])).toEqual([
        ['lookUp', { id: '1' }],
        ['lookUp', { id: '2' }],
      ]);
      expect(second?.toolResults.map(({ callId, toolName, text }) => [callId, toolName, text])).toEqual([
        [called?.toolCalls[0]?.id, 'lookUp', '{"id":"1","cents":100}'],
        [called?.toolCalls[1]?.id, 'lookUp', '{"id":"2","cents":200}'],
      ]);
    },
  );

  test('long arguments of a tool call survive being streamed in pieces', async () => {
    const args = { id: 'x'.repeat(10_000), more: { 'a "quoted" key': ['🎈', null, 1.5] } };
    const { url } = await start(() => ({ toolCalls: [{ name: 'lookUp', args, id: 'call_mine' }] }));
    const input = z.looseObject({ id: z.string() });
    const result = streamText({
      model: client(url),
      prompt: 'go',
      tools: { lookUp: tool({ inputSchema: input }) },
      maxRetries: 0,
    });
    expect(await result.toolCalls).toMatchObject([
      { toolCallId: 'call_mine', toolName: 'lookUp', input: args },
    ]);
  });
});

test('reasoning comes before the text and goes back with the transcript', async () => {
  const { url, requests } = await start(
    scriptedTurns([{ reasoning: 'They greet me.', text: 'Hi!' }, { text: 'Bye!' }]),
  );
  const model = compatible(url);
  const first = await generateText({ model, prompt: 'Hello' });
  expect(first.reasoningText).toBe('They greet me.');

  const streamed = streamText({ model, prompt: 'Hello' });
  const kinds = new Set<string>();
  for await (const { type } of streamed.fullStream) if (type.endsWith('-delta')) kinds.add(type);
  expect([...kinds]).toEqual(['reasoning-delta', 'text-delta']);
  expect(await streamed.reasoningText).toBe('They greet me.');

  const messages: ModelMessage[] = [
    { role: 'user', content: 'Hello' },
    ...first.response.messages,
    { role: 'user', content: 'Leave' },
  ];
  expect((await generateText({ model, messages })).text).toBe('Bye!');
  expect(requests.at(-1)?.request.messages[1]?.reasoning).toBe('They greet me.');
});

test('the same request gets the same reply, down to the ids of its calls', async () => {
  const { url } = await start(() => ({ toolCalls: [{ name: 'lookUp', args: { id: '1' } }] }));
  const ask = async (prompt: string): Promise<string | undefined> =>
    (await generateText({ model: compatible(url), prompt, tools: { lookUp } })).toolCalls[0]?.toolCallId;
  const first = await ask('one');
  expect(first).toMatch(/^call_[0-9a-f]{16}_0$/);
  expect(await ask('one')).toBe(first);
  expect(await ask('two')).not.toBe(first);
});

describe('scriptedTurns', () => {
  test('answers by position, also when a turn is repeated, and takes functions', async () => {
    const script = scriptedTurns([
      { text: 'first' },
      ({ lastUserText }) => ({ text: `second: ${lastUserText}` }),
    ]);
    const { url } = await start(script);
    const say = async (messages: ModelMessage[]): Promise<string> =>
      (await generateText({ model: compatible(url), messages, maxRetries: 0 })).text;
    const start1: ModelMessage[] = [{ role: 'user', content: 'a' }];
    const start2: ModelMessage[] = [
      ...start1,
      { role: 'assistant', content: 'first' },
      { role: 'user', content: 'b' },
    ];
    expect(await say(start2)).toBe('second: b');
    expect(await say(start1)).toBe('first');
    expect(await say(start2)).toBe('second: b');
  });

  test('a request beyond the last turn is an error that clients do not retry', async () => {
    const { url } = await start(scriptedTurns([]));
    await expect(generateText({ model: compatible(url), prompt: 'a' })).rejects.toMatchObject({
      statusCode: 400,
      isRetryable: false,
      message: 'the script has 0 turns and the request asks for turn 0 (counted from 0)',
    });
  });
});

test('usage that is not given is a quarter of the bytes, the same each time', async () => {
  const { url, requests } = await start(() => ({
    text: 'äöü',
    toolCalls: [{ name: 'lookUp', args: { id: '1' } }],
  }));
  const ask = () => generateText({ model: compatible(url), prompt: 'Hello', tools: { lookUp } });
  const { usage } = await ask();
  const { messages, tools } = requests[0]?.request.body ?? {};
  expect(usage.inputTokens).toBe(estimateTokens(JSON.stringify(messages) + JSON.stringify(tools)));
  // 'äöü' + 'lookUp' + '{"id":"1"}': 6 + 6 + 10 bytes.
  expect(usage.outputTokens).toBe(6);
  expect((await ask()).usage).toEqual(usage);
});

test.each(['::1', '::', '0.0.0.0', 'localhost'])('its url reaches it when it listens on %s', async (host) => {
  const { url, port } = await start(() => ({ text: 'Here.' }), { host });
  expect(new URL(url).port).toBe(String(port));
  expect((await generateText({ model: compatible(url), prompt: 'a', maxRetries: 0 })).text).toBe('Here.');
});

test('usage can be left out', async () => {
  const { url } = await start(() => ({ text: 'x', usage: 'omit' }));
  expect((await generateText({ model: compatible(url), prompt: 'a' })).usage.totalTokens).toBeUndefined();
});

describe('a slow reply', () => {
  const HOUR = 3_600_000;

  test('is on record before its first byte, and ends when the client leaves', async () => {
    const { url, requests, waitFor } = await start(() => ({ text: 'late', delayMs: HOUR }));
    const leaving = new AbortController();
    const call = rejection(
      generateText({ model: compatible(url), prompt: 'a', abortSignal: leaving.signal, maxRetries: 0 }),
    );
    await waitFor(([request]) => request?.state === 'open');
    leaving.abort();
    expect(await call).toMatchObject({ name: 'AbortError' });
    await waitFor(([request]) => request?.state === 'gone');
    expect(requests).toMatchObject([{ outcome: 'reply' }]);
  });

  test('waits before each piece', async () => {
    const { url, waitFor } = await start(() => ({ text: 'late', chunkDelayMs: HOUR }));
    const leaving = new AbortController();
    const { fullStream } = streamText({ model: compatible(url), prompt: 'a', abortSignal: leaving.signal });
    const parts: string[] = [];
    for await (const { type } of fullStream) {
      parts.push(type);
      // The opening chunk has come, the first piece has not.
      if (type === 'start-step') leaving.abort();
    }
    expect(parts).toEqual(['start', 'start-step', 'abort']);
    await waitFor(([request]) => request?.state === 'gone');
  });

  test('comes in the end', async () => {
    const { url, waitFor } = await start(() => ({ text: 'a b c', delayMs: 1, chunkDelayMs: 1 }));
    expect(await streamText({ model: compatible(url), prompt: 'a' }).text).toBe('a b c');
    await waitFor(([request]) => request?.state === 'done');
  });
});

test('a script that throws is a 400 with its message', async () => {
  const { url, requests } = await start(() => {
    throw new Error('no such case');
  });
  await expect(generateText({ model: compatible(url), prompt: 'a' })).rejects.toMatchObject({
    statusCode: 400,
    message: 'the script threw: no such case',
  });
  expect(requests).toMatchObject([{ outcome: 'fault:script' }]);
});

describe('what a real endpoint refuses', () => {
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const post = async (url: string, body: unknown): Promise<{ status: number; message: string }> => {
    const response = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const json = (await response.json()) as { error?: { message: string } };
    return { status: response.status, message: json.error?.message ?? '' };
  };
  const user = { role: 'user', content: 'a' };

  test.each([
    ['no JSON', '{', 'not JSON'],
    ['no messages', { model: 'm', messages: [] }, 'messages'],
    ['an unknown role', { model: 'm', messages: [{ role: 'robot', content: '' }] }, 'role'],
    [
      'a tool name that no provider takes',
      {
        model: 'm',
        messages: [user],
        tools: [{ type: 'function', function: { name: 'a b', parameters: {} } }],
      },
      'name',
    ],
    [
      'a call without its result',
      { model: 'm', messages: [user, { role: 'assistant', tool_calls: [call] }, user] },
      'did not have response messages: c1',
    ],
    [
      'a call without its result at the end',
      { model: 'm', messages: [user, { role: 'assistant', tool_calls: [call] }] },
      'did not have response messages: c1',
    ],
    [
      'a result without its call',
      { model: 'm', messages: [user, { role: 'tool', tool_call_id: 'c1', content: '' }] },
      "must be a response to a preceding message with 'tool_calls'",
    ],
    [
      'the old cap on tokens, of a model that reasons',
      { model: 'gpt-5-mini', messages: [user], max_tokens: 5 },
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ],
    [
      'a temperature, of a model that reasons',
      { model: 'o3', messages: [user], max_completion_tokens: 5, temperature: 0.2 },
      "Unsupported value: 'temperature' does not support 0.2 with this model.",
    ],
  ])('%s', async (_name, body, words) => {
    const { url, requests } = await start(() => ({ text: 'never' }));
    const answer = await post(url, body);
    expect(answer.status).toBe(400);
    expect(answer.message).toContain(words);
    expect(requests).toHaveLength(0);
  });

  test('with strict: false a broken transcript passes', async () => {
    const { url } = await start(() => ({ text: 'fine' }), { strict: false });
    const messages = [user, { role: 'assistant', tool_calls: [call] }, user];
    expect((await post(url, { model: 'm', messages })).status).toBe(200);
  });

  test('another path is a 404 that names the one there is', async () => {
    const { url } = await start(() => ({ text: 'never' }));
    const model = createOpenAI({ baseURL: url, apiKey: 'unused' }).responses('m');
    await expect(generateText({ model, prompt: 'a', maxRetries: 0 })).rejects.toMatchObject({
      statusCode: 404,
      message: expect.stringContaining('POST /v1/chat/completions') as unknown,
    });
  });
});
