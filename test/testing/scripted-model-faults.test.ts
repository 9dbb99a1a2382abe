/** What the AI SDK makes of each fault: the table that the classification of model errors is built on. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, InvalidResponseDataError, JSONParseError } from '@ai-sdk/provider';
import {
  generateText,
  InvalidToolInputError,
  NoOutputGeneratedError,
  streamText,
  type TextStreamPart,
  type ToolSet,
  tool,
} from 'ai';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Fault, type Reply, type ScriptedModel, startScriptedModel } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';

const started: ScriptedModel[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((model) => model.stop()));
});

const tools = { lookUp: tool({ inputSchema: z.object({ id: z.string() }), execute: ({ id }) => id }) };

async function start(decision: Fault | Reply) {
  const endpoint = await startScriptedModel({ script: () => decision });
  started.push(endpoint);
  const model = createOpenAICompatible({ name: 'scripted', baseURL: endpoint.url, includeUsage: true })('m');
  return { endpoint, input: { model, prompt: 'go', tools, maxRetries: 0 } };
}

/** What generateText throws. */
async function generateError(decision: Fault): Promise<unknown> {
  const { input } = await start(decision);
  return rejection(generateText(input));
}

interface Streamed {
  parts: TextStreamPart<ToolSet>['type'][];
  /** The `error` part of the stream. */
  error?: unknown;
  /** What iterating the stream threw. */
  thrown?: unknown;
  text: unknown;
  finishReason: unknown;
}

async function streamed(decision: Fault): Promise<Streamed> {
  const { input } = await start(decision);
  const result = streamText({ ...input, onError: () => {} });
  const seen: Streamed = { parts: [], text: undefined, finishReason: undefined };
  try {
    for await (const part of result.fullStream) {
      seen.parts.push(part.type);
      if (part.type === 'error') seen.error = part.error;
    }
  } catch (error) {
    seen.thrown = error;
  }
  const settle = (value: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(value).catch((error: unknown) => error);
  seen.text = await settle(result.text);
  seen.finishReason = await settle(result.finishReason);
  return seen;
}

describe('status', () => {
  test.each([
    [400, false],
    [401, false],
    [403, false],
    [404, false],
    [408, true],
    [409, true],
    [413, false],
    [422, false],
    [429, true],
    [500, true],
    [503, true],
    [529, true],
  ])('%i: APICallError, isRetryable %s', async (status, isRetryable) => {
    const fault: Fault = { fault: 'status', status, message: 'no', retryAfterSeconds: 7 };
    const fields = { statusCode: status, isRetryable, message: 'no', data: { error: { message: 'no' } } };
    const headers = { responseHeaders: { 'retry-after': '7' } };
    const thrown = await generateError(fault);
    expect(APICallError.isInstance(thrown)).toBe(true);
    expect(thrown).toMatchObject({ ...fields, ...headers });

    const stream = await streamed(fault);
    expect(stream.parts).toEqual(['start', 'error']);
    expect(stream.error).toMatchObject({ ...fields, ...headers });
    expect(NoOutputGeneratedError.isInstance(stream.text)).toBe(true);
  });

  test('a body that is not the protocol’s: the status text is the message', async () => {
    const thrown = await generateError({ fault: 'status', status: 503, body: '<html>busy</html>' });
    expect(thrown).toMatchObject({
      statusCode: 503,
      isRetryable: true,
      message: 'Service Unavailable',
      responseBody: '<html>busy</html>',
    });
  });
});

describe('hang', () => {
  test.each([0, 2])('after %i pieces, until the client goes', async (afterChunks) => {
    const { endpoint, input } = await start({ fault: 'hang', afterChunks });
    const leaving = new AbortController();
    const call = rejection(generateText({ ...input, abortSignal: leaving.signal }));
    await endpoint.waitFor((requests) => requests.some(({ state }) => state === 'open'));
    leaving.abort();
    expect(await call).toMatchObject({ name: 'AbortError' });
    await endpoint.waitFor(([request]) => request?.state === 'gone');
    expect(endpoint.requests).toMatchObject([{ outcome: 'fault:hang', state: 'gone' }]);
  });

  test('a stream that stalls: the text so far, then abort, with the reason of the signal', async () => {
    const { input } = await start({ fault: 'hang', afterChunks: 2, reply: { text: 'one two three' } });
    const leaving = new AbortController();
    let text = '';
    const result = streamText({ ...input, abortSignal: leaving.signal });
    const parts: string[] = [];
    for await (const part of result.fullStream) {
      parts.push(part.type);
      if (part.type === 'text-delta') text += part.text;
      if (text === 'one two') leaving.abort(new DOMException('too slow', 'TimeoutError'));
    }
    expect(text).toBe('one two');
    expect(parts.at(-1)).toBe('abort');
    await expect(result.text).rejects.toMatchObject({ name: 'TimeoutError', message: 'too slow' });
  });

  test('until the endpoint stops', async () => {
    const { endpoint, input } = await start({ fault: 'hang' });
    const call = rejection(generateText(input));
    await endpoint.waitFor((requests) => requests.length === 1);
    await endpoint.stop();
    expect(await call).toMatchObject({ name: 'AI_APICallError', isRetryable: true });
    await expect(endpoint.waitFor(() => false)).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' });
  });
});

describe('cut', () => {
  test('before the status line: APICallError without a status, retryable, the socket error as its cause', async () => {
    const fields = {
      name: 'AI_APICallError',
      message: 'Cannot connect to API: other side closed',
      isRetryable: true,
      cause: { name: 'SocketError', code: 'UND_ERR_SOCKET' },
    };
    const thrown = await generateError({ fault: 'cut', afterChunks: 0 });
    expect(thrown).toMatchObject(fields);
    expect((thrown as APICallError).statusCode).toBeUndefined();
    const stream = await streamed({ fault: 'cut', afterChunks: 0 });
    expect(stream.parts).toEqual(['start', 'error']);
    expect(stream.error).toMatchObject(fields);
  });

  test('in mid-stream: the iteration throws, with status 200 and retryable; there is no error part', async () => {
    const fields = {
      name: 'AI_APICallError',
      message: 'Failed to process successful response',
      statusCode: 200,
      isRetryable: true,
      cause: { name: 'TypeError', message: 'terminated', cause: { code: 'UND_ERR_SOCKET' } },
    };
    const stream = await streamed({ fault: 'cut', afterChunks: 3 });
    expect(stream.parts.filter((type) => type === 'text-delta')).toHaveLength(3);
    expect(stream.parts).not.toContain('error');
    expect(stream.thrown).toMatchObject(fields);
    expect(stream.text).toMatchObject(fields);
    expect(await generateError({ fault: 'cut' })).toMatchObject(fields);
  });
});

test('garbage: not retryable, though it may well be worth a retry', async () => {
  const thrown = await generateError({ fault: 'garbage' });
  expect(thrown).toMatchObject({ name: 'AI_APICallError', statusCode: 200, isRetryable: false });
  expect(JSONParseError.isInstance((thrown as APICallError).cause)).toBe(true);

  const stream = await streamed({ fault: 'garbage', afterChunks: 2, reply: { text: 'one two three' } });
  expect(JSONParseError.isInstance(stream.error)).toBe(true);
  expect(stream).toMatchObject({ text: 'one two', finishReason: 'error' });
});

test('error-event: a plain object in the error part of a stream, a 500 without streaming', async () => {
  const stream = await streamed({ fault: 'error-event', message: 'overloaded', reply: { text: 'one two' } });
  expect(stream.error).toEqual({ message: 'overloaded', type: 'server_error', param: null, code: null });
  expect(stream).toMatchObject({ text: 'one', finishReason: 'error' });
  expect(await generateError({ fault: 'error-event' })).toMatchObject({ statusCode: 500, isRetryable: true });
});

test('no-finish: an error in a stream, and finish reason `other` without streaming', async () => {
  const stream = await streamed({ fault: 'no-finish', reply: { text: 'all of it' } });
  expect(InvalidResponseDataError.isInstance(stream.error)).toBe(true);
  expect(stream).toMatchObject({ text: 'all of it', finishReason: 'error' });
  const { input } = await start({ fault: 'no-finish', reply: { text: 'all of it' } });
  expect(await generateText(input)).toMatchObject({ text: 'all of it', finishReason: 'other' });
});

test('no-choices: InvalidResponseDataError', async () => {
  expect(InvalidResponseDataError.isInstance(await generateError({ fault: 'no-choices' }))).toBe(true);
  const stream = await streamed({ fault: 'no-choices' });
  expect(InvalidResponseDataError.isInstance(stream.error)).toBe(true);
  expect(stream).toMatchObject({ text: '', finishReason: 'error' });
});

describe('tool calls that are wrong do not throw', () => {
  const toolCalls = [
    { name: 'lookUp', args: { id: '1' } },
    { name: 'lookUp', args: { id: '2' } },
  ];

  test('invalid-arguments: a call marked invalid, with the raw text as its input', async () => {
    const { input } = await start({ fault: 'invalid-arguments' });
    for (const calls of [(await generateText(input)).toolCalls, await streamText(input).toolCalls]) {
      expect(calls).toMatchObject([
        { toolName: 'lookUp', input: '{"broken": ', invalid: true, dynamic: true },
      ]);
      expect(InvalidToolInputError.isInstance(calls[0]?.dynamic === true && calls[0].error)).toBe(true);
    }
  });

  test('duplicate-ids: generateText gives the first call’s input twice, streamText renames the second', async () => {
    const { input } = await start({ fault: 'duplicate-ids', toolCalls, id: 'same' });
    expect((await generateText(input)).toolCalls).toMatchObject([
      { toolCallId: 'same', input: { id: '1' } },
      { toolCallId: 'same', input: { id: '1' } },
    ]);
    const [first, second] = await streamText(input).toolCalls;
    expect(first).toMatchObject({ toolCallId: 'same', input: { id: '1' } });
    expect(second).toMatchObject({ input: { id: '2' } });
    expect(second?.toolCallId).not.toBe('same');
  });

  test('missing-id: the client makes up ids, other ones each time', async () => {
    const { input } = await start({ fault: 'missing-id', toolCalls });
    const ids = new Set<string>();
    for (const { toolCallId } of (await generateText(input)).toolCalls) ids.add(toolCallId);
    for (const { toolCallId } of await streamText(input).toolCalls) ids.add(toolCallId);
    expect(ids.size).toBe(4);
  });
});

test('refusal: finish reason content-filter, no error', async () => {
  const { input } = await start({ fault: 'refusal', text: 'I cannot' });
  expect(await generateText(input)).toMatchObject({ text: 'I cannot', finishReason: 'content-filter' });
  expect(await streamed({ fault: 'refusal' })).toMatchObject({ text: '', finishReason: 'content-filter' });
});
