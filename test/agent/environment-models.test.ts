/** Models that the environment names, up to the wire: what OpenAI refuses, the endpoint here refuses too. */
import { createOpenAI } from '@ai-sdk/openai';
import { generateText } from 'ai';
import { expect, onTestFinished, test, vi } from 'vitest';
import { defineAgent, modelsFromEnvironment } from '../../src/index.ts';
import { type ScriptedRequest, startScriptedModel } from '../../src/testing/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

// OpenAI's client says what it leaves out.
globalThis.AI_SDK_LOG_WARNINGS = false;

type Body = ScriptedRequest['body'];

/** What a model of the environment sends to an endpoint that OpenAI's base URL may stand for. */
async function sent(name: string, baseURL?: string): Promise<Body | undefined> {
  const endpoint = await startScriptedModel({ script: () => ({ text: 'fine' }) });
  onTestFinished(() => endpoint.stop());
  const { fetch } = globalThis;
  // OpenAI itself is not to be had here: its host is answered by the endpoint.
  const spy = vi.spyOn(globalThis, 'fetch').mockImplementation((url, init) => {
    const here = typeof url === 'string' && baseURL !== undefined ? url.replace(baseURL, endpoint.url) : url;
    return fetch(here, init);
  });
  const models = modelsFromEnvironment({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: baseURL ?? endpoint.url });
  const model = models?.languageModel(`openai:${name}`);
  if (model === undefined) return undefined;
  await generateText({ model, prompt: 'Hi', maxOutputTokens: 50, temperature: 0.5, maxRetries: 0 });
  spy.mockRestore();
  return endpoint.requests[0]?.request.body;
}

/** The name of the cap, and whether the temperature went along. */
const shape = (body: Body | undefined): unknown[] => [
  body?.['max_tokens'],
  body?.['max_completion_tokens'],
  body?.['temperature'],
];

test.each([
  'o1',
  'o3-mini',
  'o4-mini-2025-04-16',
  'gpt-5',
  'gpt-5-mini',
  'gpt-5.1',
  'gpt-5.1-chat-latest',
  'gpt-6',
  'gpt-10-mini',
  'gpt-5-chat-latest',
  'gpt-4o',
  'gpt-4.1-mini',
  'gpt-oss-20b',
  'o-model',
  'omni-3',
])('%s is sent what the client of OpenAI sends it', async (name) => {
  const lenient = await startScriptedModel({ script: () => ({ text: 'fine' }), strict: false });
  onTestFinished(() => lenient.stop());
  const model = createOpenAI({ baseURL: lenient.url, apiKey: 'k' }).chat(name);
  await generateText({ model, prompt: 'Hi', maxOutputTokens: 50, temperature: 0.5 });
  expect(shape(await sent(name))).toEqual(shape(lenient.requests[0]?.request.body));
});

test('a gateway writes the names with more about them', async () => {
  for (const name of [
    'openai/gpt-5-mini',
    'azure/o3',
    'openai/gpt-5:online',
    'ft:o4-mini-2025-04-16:us::1',
  ]) {
    expect([name, ...shape(await sent(name))]).toEqual([name, undefined, 50, undefined]);
  }
  expect(shape(await sent('openai/gpt-4o'))).toEqual([50, undefined, 0.5]);
});

test('OpenAI itself takes the new name of the cap for all its models', async () => {
  for (const base of ['https://api.openai.com/v1', 'https://eu.api.openai.com/v1']) {
    expect(shape(await sent('gpt-4o', base))).toEqual([undefined, 50, 0.5]);
  }
  expect(shape(await sent('gpt-4o', 'https://api.openai.com.example.org/v1'))).toEqual([50, undefined, 0.5]);
});

test("the README's own model answers a session, with the options of its provider", async () => {
  const stage = await openStage(() => ({ text: 'hello' }));
  const models = modelsFromEnvironment({ OPENAI_BASE_URL: stage.model.url, OPENAI_API_KEY: 'k' });
  const providerOptions = { openai: { reasoningEffort: 'low', store: false } };
  const agent = defineAgent({
    name: 'a',
    model: 'openai:gpt-5-mini',
    instructions: 'Help.',
    temperature: 0.2,
    providerOptions,
  });
  await stage.startWorker([agent], models === undefined ? {} : { models });
  const session = await stage.sessions.start('a', { id: stage.id(), message: 'go' });
  expect(await untilPhase(session, 'idle', 'waiting')).toMatchObject({ phase: 'idle', lastText: 'hello' });
  expect(stage.model.requests[0]?.request.body).toMatchObject({
    model: 'gpt-5-mini',
    max_completion_tokens: 4_096,
    reasoning_effort: 'low',
    store: false,
  });
});
