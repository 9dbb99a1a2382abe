/** Messages and results with files: stored once by digest, and given to the provider as it takes them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LanguageModelV3, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import {
  type AgentOptions,
  type DefinedTool,
  DirectoryValues,
  defineAgent,
  defineTool,
  type Session,
  Sessions,
} from '../../src/index.ts';
import { readEvents } from '../../src/temporal/index.ts';
import { type Script, scriptedTurns } from '../../src/testing/index.ts';
import { outlives } from '../support/heartbeats.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

/** Bytes that begin like a PNG. */
const PNG = Buffer.concat([
  Buffer.from('89504e470d0a1a0a', 'hex'),
  Buffer.from('a picture of a cat '.repeat(5_000)),
]);
const BASE64 = PNG.toString('base64');

interface Place extends Stage {
  values: DirectoryValues;
  digests(): Promise<string[]>;
}

async function openPlace(
  script: Script,
  {
    tools = {},
    model,
    ...options
  }: { tools?: Record<string, DefinedTool>; model?: LanguageModelV3 } & Pick<AgentOptions, 'heartbeat'> = {},
): Promise<Place> {
  const stage = await openStage(script);
  const folder = mkdtempSync(join(tmpdir(), 'values-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const values = new DirectoryValues(folder);
  const agent = defineAgent({
    name: 'files',
    model: model ?? stage.provider('m'),
    instructions: 'Go.',
    tools,
    ...options,
  });
  await stage.startWorker([agent], { values });
  return {
    ...stage,
    values,
    sessions: new Sessions(stage.client, { taskQueue: stage.taskQueue, values }),
    digests: async () => {
      const found: string[] = [];
      for await (const { digest } of values.list()) found.push(digest);
      return found;
    },
  };
}

const answer: Script = () => ({ text: 'A cat.' });
const ask = [
  { type: 'text', text: 'What is' },
  { type: 'image', image: PNG },
  { type: 'text', text: 'this?' },
] as const;

/** The content of the last message of the user in the last request. */
const sentContent = ({ model }: Place): unknown => {
  const messages = model.requests.at(-1)?.request.body['messages'] as { role: string; content: unknown }[];
  return messages.findLast(({ role }) => role === 'user')?.content;
};

const asSent = [
  { type: 'text', text: 'What is' },
  { type: 'image_url', image_url: { url: `data:image/png;base64,${BASE64}` } },
  { type: 'text', text: 'this?' },
];

test('an image goes to the model in its place, is stored once, and is not in the history', async () => {
  const place = await openPlace(answer);
  const session = await place.sessions.start('files', { id: place.id(), message: { parts: ask } });
  await untilPhase(session, 'idle');
  expect(sentContent(place)).toEqual(asSent);
  await session.send({
    parts: [{ type: 'file', data: BASE64, mediaType: 'image/png', filename: 'cat.png' }],
  });
  await until(session, ({ phase, turn }) => phase === 'idle' && turn === 2);
  const { items } = await session.transcript();
  const [first, , second] = items.map(({ blocks }) => blocks);
  const value = { digest: expect.any(String), bytes: PNG.length, media_type: 'image/png' };
  expect(first).toEqual([
    { kind: 'text', text: 'What is' },
    { kind: 'file', media_type: 'image/png', value },
    { kind: 'text', text: 'this?' },
  ]);
  expect(second).toEqual([{ kind: 'file', media_type: 'image/png', filename: 'cat.png', value }]);
  const [digest = '', ...more] = await place.digests();
  expect(more).toEqual([]);
  expect(await session.value(digest)).toEqual({ bytes: PNG, mediaType: 'image/png' });
  let history = '';
  for await (const event of readEvents(place.client, { workflowId: session.id }))
    history += Buffer.from(JSON.stringify(event)).toString();
  expect(history).not.toContain(BASE64.slice(100, 200));
  expect((await place.client.workflow.getHandle(session.id).describe()).historySize).toBeLessThan(20_000);
  await expectSound(place, session);
});

test('a file without a store is refused with the part and what to do, and a URL passes', async () => {
  const place = await openPlace(answer);
  const sessions = new Sessions(place.client, { taskQueue: place.taskQueue });
  const id = place.id();
  expect(await rejection(sessions.start('files', { id, message: { parts: ask } }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    details: { field: 'parts.1' },
    message: expect.stringContaining('new Sessions(client, { values })'),
  });
  const url = 'https://example.com/cat.png';
  const session = await sessions.start('files', {
    id,
    message: { parts: [{ type: 'image', image: new URL(url) }] },
  });
  await untilPhase(session, 'idle');
  expect(sentContent(place)).toEqual([{ type: 'image_url', image_url: { url } }]);
});

test.each([
  [
    { type: 'audio', audio: 'x' },
    'parts.0.type',
    /^parts\.0\.type: "audio" is not known: write text, file or image$/,
  ],
  [{ type: 'file', data: 'x' }, 'parts.0.mediaType', /application\/pdf/],
  [{ type: 'image', image: 'not base64!' }, 'parts.0', /neither base64 nor an http\(s\) URL/],
  [{ type: 'image', image: Buffer.from('no image') }, 'parts.0.mediaType', /image\/png/],
])('the part %j is refused by name', async (part, field, message) => {
  const place = await openPlace(answer);
  const parts = [part] as never;
  const error = await rejection(place.sessions.start('files', { id: place.id(), message: { parts } }));
  expect(error).toMatchObject({
    code: 'INVALID_ARGUMENT',
    details: { field },
    message: expect.stringMatching(message),
  });
  expect(await place.digests()).toEqual([]);
});

test('a part of a kind that nobody knows is refused by the session, from any client', async () => {
  const place = await openPlace(answer);
  const session = await place.sessions.start('files', { id: place.id() });
  const blocks = [{ kind: 'hologram', data: 'x' }] as never;
  expect(await rejection(session.send({ text: 'Look', blocks }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    details: { field: expect.stringContaining('blocks.0') },
  });
});

test('a file that the model does not take: the session waits and says so in words', async () => {
  const place = await openPlace(answer);
  const parts = [{ type: 'file', data: Buffer.from('PK'), mediaType: 'application/zip' }] as const;
  const session = await place.sessions.start('files', { id: place.id(), message: { parts } });
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({
    reason: 'provider_rejected',
    message: expect.stringContaining('application/zip'),
  });
});

test('a file that is gone from the store is named to the model, and the session goes on', async () => {
  const place = await openPlace(answer);
  const get = place.values.get.bind(place.values);
  place.values.get = () => Promise.reject(new Error('not yet'));
  const session = await place.sessions.start('files', { id: place.id(), message: { parts: ask } });
  await untilPhase(session, 'waiting');
  const [digest = ''] = await place.digests();
  await place.values.release(digest, `${place.client.options.namespace}/${session.id}`);
  place.values.get = get;
  await session.resume();
  await untilPhase(session, 'idle');
  expect(sentContent(place)).toMatchObject([
    { type: 'text', text: 'What is' },
    { type: 'text', text: `[the file without a name (image/png) is no longer stored: ${digest}]` },
    { type: 'text', text: 'this?' },
  ]);
  expect(await rejection(session.value(digest))).toMatchObject({ code: 'VALUE_NOT_FOUND' });
});

test('a store that is down: the session waits with the reason, and goes on when it is resumed', async () => {
  const place = await openPlace(answer);
  const get = place.values.get.bind(place.values);
  place.values.get = () => Promise.reject(new Error('the disk is gone'));
  const session = await place.sessions.start('files', { id: place.id(), message: { parts: ask } });
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({ message: expect.stringContaining('the disk is gone') });
  expect(place.model.requests).toEqual([]);
  place.values.get = get;
  await session.resume();
  await untilPhase(session, 'idle');
  expect(sentContent(place)).toEqual(asSent);
});

/** A session with a file, whose store gives no answer until the heartbeat time-out has passed. */
async function afterSilence(answers: 'slow' | 'fails'): Promise<{ place: Place; session: Session }> {
  const place = await openPlace(answer, { heartbeat: '2s' });
  const get = place.values.get.bind(place.values);
  let answered = (): void => {};
  const silence = new Promise<void>((resolve) => {
    answered = resolve;
  });
  place.values.get = async (...args) => {
    await silence;
    if (answers === 'fails') throw new Error('the disk is gone');
    return get(...args);
  };
  const session = await place.sessions.start('files', { id: place.id(), message: { parts: ask } });
  await outlives(2_000, place, session);
  answered();
  return { place, session };
}

test('a store that is slower than the heartbeat time-out: the model is asked once, and nothing is charged twice', async () => {
  const { place, session } = await afterSilence('slow');
  const { budget } = await untilPhase(session, 'idle');
  expect(budget.spent).toMatchObject({ turns: 1, lostReplies: 0 });
  expect(place.model.requests).toHaveLength(1);
  expect(sentContent(place)).toEqual(asSent);
  await expectSound(place, session);
});

test('a store that is silent for longer than the heartbeat time-out, and fails: the session waits, and nothing is charged', async () => {
  const { place, session } = await afterSilence('fails');
  const { wait, budget } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({
    reason: 'history_unreadable',
    message: expect.stringContaining('the disk is gone'),
  });
  expect(budget.spent).toMatchObject({ turns: 0, lostReplies: 0 });
  expect(place.model.requests).toEqual([]);
  await expectSound(place, session);
});

test('a store that does not answer: the session can be cancelled', async () => {
  const place = await openPlace(answer);
  let asked = false;
  place.values.get = () => {
    asked = true;
    return new Promise(() => {});
  };
  const session = await place.sessions.start('files', { id: place.id(), message: { parts: ask } });
  await expect.poll(() => asked).toBe(true);
  await session.cancel();
  expect(await session.result()).toMatchObject({ status: 'cancelled', turns: 0 });
  await expectSound(place, session);
});

test("an image in a tool's result is stored, and the model gets it", async () => {
  const snap = defineTool({
    inputSchema: z.object({}),
    effect: 'read',
    execute: async () => ({ taken: true }),
    toModelOutput: () => ({
      type: 'content',
      value: [
        { type: 'text', text: 'The picture:' },
        { type: 'image-data', data: BASE64, mediaType: 'image/png' },
      ],
    }),
  }) as DefinedTool;
  const place = await openPlace(
    scriptedTurns([{ toolCalls: [{ name: 'snap', args: {} }] }, { text: 'A cat.' }]),
    {
      tools: { snap },
    },
  );
  const session = await place.sessions.start('files', { id: place.id(), message: 'Snap.' });
  await untilPhase(session, 'idle');
  const [digest = ''] = await place.digests();
  const [call] = (await session.calls()).items;
  expect(call?.result?.modelOutput).toEqual({
    type: 'content',
    value: [
      { type: 'text', text: 'The picture:' },
      {
        type: 'image-data',
        mediaType: 'image/png',
        value: { digest, bytes: PNG.length, media_type: 'image/png' },
      },
    ],
  });
  const { text = '' } = place.model.requests.at(-1)?.request.toolResults[0] ?? {};
  expect(JSON.parse(text)).toEqual([
    { type: 'text', text: 'The picture:' },
    { type: 'image-data', mediaType: 'image/png', data: BASE64 },
  ]);
  await expectSound(place, session);
});

test('files, sources and metadata that a model returns are kept, and files are sent back to it', async () => {
  const prompts: unknown[] = [];
  const usage = {
    inputTokens: { total: 5, noCache: 5, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 5, text: 5, reasoning: undefined },
  };
  const model = {
    specificationVersion: 'v3',
    provider: 'painter',
    modelId: 'm',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('not used')),
    doStream: async ({ prompt }) => {
      prompts.push(prompt);
      const parts: LanguageModelV3StreamPart[] = [
        { type: 'reasoning-start', id: 'r' },
        { type: 'reasoning-delta', id: 'r', delta: 'I paint.' },
        { type: 'reasoning-end', id: 'r', providerMetadata: { painter: { signature: 's1' } } },
        { type: 'file', mediaType: 'image/png', data: BASE64, providerMetadata: { painter: { id: 'f1' } } },
        { type: 'source', sourceType: 'url', id: 's', url: 'https://example.com', title: 'Cats' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage },
      ];
      return { stream: ReadableStream.from(parts) };
    },
  } satisfies Partial<LanguageModelV3> as LanguageModelV3;
  const place = await openPlace(answer, { model });
  const session = await place.sessions.start('files', { id: place.id(), message: 'Paint.' });
  await untilPhase(session, 'idle');
  await session.send('Again.');
  await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
  const { items } = await session.transcript();
  const [digest = '', ...more] = await place.digests();
  expect(more).toEqual([]);
  expect(items[1]?.blocks).toEqual([
    { kind: 'reasoning', text: 'I paint.', metadata: { painter: { signature: 's1' } } },
    {
      kind: 'file',
      media_type: 'image/png',
      value: { digest, bytes: PNG.length, media_type: 'image/png' },
      metadata: { painter: { id: 'f1' } },
    },
    { kind: 'source', id: 's', url: 'https://example.com', title: 'Cats' },
  ]);
  expect(prompts[1]).toMatchObject([
    { role: 'system' },
    { role: 'user' },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'I paint.', providerOptions: { painter: { signature: 's1' } } },
        { type: 'file', mediaType: 'image/png', data: PNG, providerOptions: { painter: { id: 'f1' } } },
      ],
    },
    { role: 'user' },
  ]);
  await expectSound(place, session);
});
