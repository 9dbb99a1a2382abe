/** Results that are too large for the history are stored, and the session holds references. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import type { Payload, PayloadCodec } from '@temporalio/common';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import {
  type DefinedTool,
  DirectoryValues,
  defineAgent,
  defineTool,
  type Session,
  Sessions,
  TemporalSaver,
} from '../../src/index.ts';
import { type Script, scriptedTurns } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const none = z.object({});
const MB = 1_000_000;

const read = (result: () => unknown): DefinedTool =>
  defineTool({ inputSchema: none, effect: 'read', execute: async () => result() }) as DefinedTool;

interface Place extends Stage {
  folder: string;
  values: DirectoryValues;
  all(): Promise<{ digest: string; owners: string[] }[]>;
  /** Starts a session of the agent, and waits until it has answered. */
  run(name?: string): Promise<Session>;
}

async function openPlace(
  tools: Record<string, DefinedTool>,
  script: Script,
  { codec }: { codec?: PayloadCodec } = {},
): Promise<Place> {
  const stage = await openStage(script);
  const folder = mkdtempSync(join(tmpdir(), 'values-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const values = new DirectoryValues(folder);
  const agent = defineAgent({ name: 'values', model: stage.provider('m'), instructions: 'Go.', tools });
  const dataConverter = codec === undefined ? {} : { dataConverter: { payloadCodecs: [codec] } };
  await stage.startWorker([agent], { values, ...dataConverter });
  const { connection, namespace } = stage.client.options as {
    connection: Client['connection'];
    namespace: string;
  };
  const client = codec === undefined ? stage.client : new Client({ connection, namespace, ...dataConverter });
  const sessions = new Sessions(client, { taskQueue: stage.taskQueue, values });
  return {
    ...stage,
    client,
    sessions,
    folder,
    values,
    all: async () => {
      const found: { digest: string; owners: string[] }[] = [];
      for await (const { digest, owners } of values.list()) found.push({ digest, owners });
      return found;
    },
    run: async (name) => {
      const session = await sessions.start('values', { id: stage.id(name), message: 'go' });
      await untilPhase(session, 'idle', 'waiting', 'unknown_effect');
      return session;
    },
  };
}

const text = ({ bytes }: { bytes: Uint8Array }): string => Buffer.from(bytes).toString();
const call = (name: string, args: object = {}) => ({ toolCalls: [{ name, args }] });
const once = (tool: string) => scriptedTurns([call(tool), { text: 'done' }]);
const digestIn = (told: string): string => /"digest":"([0-9a-f]{64})"/.exec(told)?.[1] ?? '';

async function resultOf(session: Session, index = 0) {
  const result = (await session.calls()).items[index]?.result;
  if (result === null || result === undefined) throw new Error('the call has no result');
  return result;
}

test('a result of 50 MB makes the history grow by less than 2 KB, and is there whole', async () => {
  const big = `begin ${'é'.repeat(25 * MB)} end`;
  let result: unknown = 'small';
  const place = await openPlace({ get: read(() => result) }, once('get'));
  const sizeOf = async (session: Session): Promise<number> =>
    (await place.client.workflow.getHandle(session.id).describe()).historySize ?? 0;
  const small = await sizeOf(await place.run());
  result = big;
  const session = await place.run();
  expect((await sizeOf(session)) - small).toBeLessThan(2_000);
  const { content, value } = await resultOf(session);
  expect(value).toEqual({ digest: expect.any(String), bytes: 50 * MB + 10, media_type: 'text/plain' });
  expect(content).toMatch(/^begin é+\n\[….*50000010 bytes.*…\]\né+ end$/);
  expect(text(await session.value(value ?? '')) === big).toBe(true);
  // The model was told the same.
  expect(place.model.requests.at(-1)?.request.toolResults[0]?.text).toBe(content);
  await expectSound(place, session);
});

test('equal results are stored once, however often and in whatever order of keys they come', async () => {
  let calls = 0;
  const rows = 'x'.repeat(200_000);
  const place = await openPlace(
    { get: read(() => (calls++ % 2 === 0 ? { rows, n: 1 } : { n: 1, rows })) },
    scriptedTurns([call('get'), call('get'), call('get'), { text: 'done' }]),
  );
  const [first, second] = [await place.run(), await place.run()];
  const all = await place.all();
  expect(all.map(({ digest }) => digest)).toEqual([(await resultOf(first)).value?.digest]);
  expect(all[0]?.owners.map((owner) => owner.split('/').at(-1)).sort()).toEqual([first.id, second.id].sort());
  expect(JSON.parse(text(await first.value(all[0]?.digest ?? '')))).toEqual({ n: 1, rows });
});

test('a model reads on with read_value, from where the beginning ends', async () => {
  const whole = Array.from({ length: 20_000 }, (_, i) => `line ${i} – `).join('');
  const place = await openPlace(
    { get: read(() => whole) },
    scriptedTurns([
      call('get'),
      ({ toolResults }) => {
        const { text: told = '' } = toolResults.at(-1) ?? {};
        const args: unknown = JSON.parse(/read_value\((\{.*?\})\)/.exec(told)?.[1] ?? '{}');
        return call('read_value', { ...(args as object), length: 1_001 });
      },
      { text: 'done' },
    ]),
  );
  const session = await place.run();
  const [head = ''] = ((await resultOf(session)).content as string).split('\n');
  const { content } = await resultOf(session, 1);
  const {
    text: more,
    offset,
    next,
    bytes,
  } = content as { text: string; offset: number; next: number; bytes: number };
  expect(head + more).toBe(whole.slice(0, (head + more).length));
  expect(Buffer.byteLength(more)).toBeGreaterThan(990);
  expect({ offset, next, bytes }).toEqual({
    offset: Buffer.byteLength(head),
    next: Buffer.byteLength(head + more),
    bytes: Buffer.byteLength(whole),
  });
});

test("another session's value is not found, and neither is one that was removed", async () => {
  let digest = '';
  const place = await openPlace(
    { get: read(() => 'x'.repeat(100_000)), stranger: read(() => null) },
    ({ toolResults, lastUserText }) => {
      if (toolResults.length > 0) return { text: 'done' };
      return lastUserText === 'steal' ? call('read_value', { digest }) : call('get');
    },
  );
  const owner = await place.run();
  digest = (await resultOf(owner)).value?.digest ?? '';
  const stranger = await place.sessions.start('values', { id: place.id('stranger'), message: 'steal' });
  await untilPhase(stranger, 'idle');
  expect(await resultOf(stranger)).toMatchObject({
    isError: true,
    content: expect.stringContaining(`The store has no value ${digest} of session ${stranger.id}`),
  });
  expect(await rejection(stranger.value(digest))).toMatchObject({ code: 'VALUE_NOT_FOUND' });
  expect(await rejection(owner.value('abc'))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    details: { field: 'digest' },
  });
  const storeless = new Sessions(place.client).get(owner.id);
  expect(await rejection(storeless.value(digest))).toMatchObject({
    message: expect.stringContaining('new Sessions(client, { values })'),
  });
  expect(await place.values.release(digest, `${place.client.options.namespace}/${owner.id}`)).toBe(true);
  expect(await rejection(owner.value(digest))).toMatchObject({ code: 'VALUE_NOT_FOUND' });
});

test('a store that fails twice and then works holds the result; the tool ran once', async () => {
  let [ran, tries] = [0, 0];
  const order = defineTool({
    inputSchema: none,
    execute: async () => {
      ran++;
      return 'x'.repeat(100_000);
    },
  }) as DefinedTool;
  const place = await openPlace({ order }, once('order'));
  const put = place.values.put.bind(place.values);
  place.values.put = (...args) => (++tries <= 2 ? Promise.reject(new Error('busy')) : put(...args));
  const session = await place.run();
  expect([ran, tries]).toEqual([1, 3]);
  expect((await resultOf(session)).value).toBeDefined();
});

test('a store that never answers costs its time, and not the result', async () => {
  const order = defineTool({
    inputSchema: none,
    timeout: '100ms',
    execute: async () => 'x'.repeat(300_000),
  }) as DefinedTool;
  const place = await openPlace({ order }, once('order'));
  place.values.put = () => new Promise<never>(() => {});
  const session = await place.run();
  expect((await session.calls()).items[0]).toMatchObject({
    status: { kind: 'completed' },
    result: { content: expect.stringMatching(/the store of values failed: it did not answer in time\]$/) },
  });
});

test('bytes are stored as bytes, and a large toModelOutput is stored beside its output', async () => {
  const bytes = new Uint8Array(70_000).fill(7);
  const told = defineTool({
    inputSchema: none,
    effect: 'read',
    execute: async () => ({ rows: 'y'.repeat(100_000) }),
    toModelOutput: () => ({ type: 'text', value: 'z'.repeat(90_000) }),
  }) as DefinedTool;
  const place = await openPlace(
    { bytes: read(() => bytes), told },
    scriptedTurns([call('bytes'), call('told'), { text: 'done' }]),
  );
  const session = await place.run();
  const first = await resultOf(session);
  expect(first.value).toMatchObject({ bytes: 70_000, media_type: 'application/octet-stream' });
  expect(await session.value(first.value ?? '')).toEqual({
    bytes: Buffer.from(bytes),
    mediaType: 'application/octet-stream',
  });
  const { value, modelOutput } = await resultOf(session, 1);
  expect(JSON.parse(text(await session.value(value ?? '')))).toEqual({ rows: 'y'.repeat(100_000) });
  const whole = text(await session.value(digestIn(JSON.stringify(modelOutput).replaceAll('\\', ''))));
  expect(whole).toContain('z'.repeat(90_000));
});

/** Encrypts, so to speak. */
const codec: PayloadCodec = {
  encode: async (payloads) =>
    payloads.map(({ metadata, data }) => ({
      metadata: { ...metadata, sealed: Buffer.from('yes') },
      data: Buffer.from(data ?? []).map((byte) => byte ^ 0x55),
    })),
  decode: async (payloads) =>
    payloads.map((payload): Payload => {
      const { sealed, ...metadata } = payload.metadata ?? {};
      if (sealed === undefined) return payload;
      return { metadata, data: Buffer.from(payload.data ?? []).map((byte) => byte ^ 0x55) };
    }),
};

test("values pass the client's codec before they are stored, in files for their user alone", async () => {
  const place = await openPlace({ get: read(() => 'a secret. '.repeat(20_000)) }, once('get'), { codec });
  const session = await place.run();
  const files = readdirSync(place.folder, { recursive: true, withFileTypes: true }).map((entry) => ({
    path: join(entry.parentPath, entry.name),
    isFile: entry.isFile(),
  }));
  for (const { path, isFile } of files) {
    expect((statSync(path).mode & 0o777).toString(8)).toBe(isFile ? '600' : '700');
    if (isFile) expect(readFileSync(path).includes('secret')).toBe(false);
  }
  const { value } = await resultOf(session);
  expect(text(await session.value(value ?? ''))).toBe('a secret. '.repeat(20_000));
});

test('a fork keeps the values of its past when the session is deleted, and the last deletion removes them', async () => {
  const place = await openPlace({ get: read(() => 'x'.repeat(100_000)) }, once('get'));
  const session = await place.run();
  const { value } = await resultOf(session);
  const saver = new TemporalSaver(place.client, { taskQueue: place.taskQueue, values: place.values });
  const [latest] = await saver.list(session.id, { limit: 1 });
  const fork = await place.sessions.fork(
    { sessionId: session.id, checkpointId: latest?.id ?? '' },
    { id: place.id('fork'), by: 'a', reason: 'b' },
  );
  await untilPhase(fork, 'idle');
  await saver.delete(session.id, { end: true });
  expect(text(await fork.value(value ?? ''))).toBe('x'.repeat(100_000));
  expect(await rejection(session.value(value ?? ''))).toMatchObject({ code: 'VALUE_NOT_FOUND' });
  await saver.delete(fork.id, { end: true });
  expect(await place.all()).toEqual([]);
});

test('a deletion that the store interrupts can be repeated', async () => {
  const place = await openPlace({ get: read(() => 'x'.repeat(100_000)) }, once('get'));
  const session = await place.run();
  expect(await place.all()).not.toEqual([]);
  const { client, taskQueue } = place;
  const broken = new (class extends DirectoryValues {
    override release(): Promise<boolean> {
      return Promise.reject(new Error('the disk is gone'));
    }
  })(place.folder);
  const interrupted = new TemporalSaver(client, { taskQueue, values: broken });
  expect(await rejection(interrupted.delete(session.id, { end: true }))).toMatchObject({
    code: 'SERVER_UNAVAILABLE',
    message: expect.stringContaining('the disk is gone'),
  });
  const saver = new TemporalSaver(client, { taskQueue, values: place.values });
  await saver.delete(session.id);
  expect(await place.all()).toEqual([]);
  expect(await saver.get(session.id)).toBeNull();
});

test('a tool of the name of the built-in one is refused with words', async () => {
  const stage = await openStage(once('read_value'));
  const agent = defineAgent({
    name: 'clash',
    model: stage.provider('m'),
    instructions: 'Go.',
    tools: { read_value: read(() => 1) },
  });
  const values = new DirectoryValues('/nowhere');
  const error = await rejection(stage.startWorker([agent], { values }));
  expect(error).toMatchObject({
    code: 'INVALID_DEFINITION',
    message: expect.stringContaining('tools.read_value is the name of a built-in tool: rename it'),
  });
});
