import { Client } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { expect, test } from 'vitest';
import { defineAgent, type Session, Sessions, type StreamOptions, type StreamPart } from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { Codec, SEALED } from '../support/codec.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

async function speaker(
  script: Script,
  modelTimeout = 60_000,
): Promise<{ stage: Stage; start: (text: string) => Promise<Session> }> {
  const stage = await openStage(script);
  await stage.startWorker([
    defineAgent({ name: 'speaker', model: stage.provider('m'), instructions: 'Speak.', modelTimeout }),
  ]);
  return { stage, start: (text) => stage.sessions.start('speaker', { id: stage.id(), message: text }) };
}

async function collect(session: Session, options: StreamOptions = {}): Promise<StreamPart[]> {
  const parts: StreamPart[] = [];
  for await (const part of session.stream(options)) parts.push(part);
  return parts;
}

/** What a reader has on its screen after each part: text is appended, a reset clears it. */
function screens(parts: StreamPart[]): string[] {
  let screen = '';
  return parts.map((part) => {
    if (part.type === 'reset') screen = '';
    if (part.type === 'text') screen += part.text;
    return screen;
  });
}

const words = (n: number): string => Array.from({ length: n }, (_, i) => `word${i}`).join(' ');

test('text arrives in pieces before the reply is recorded, and ends with the whole when the session rests', async () => {
  const answer = words(60);
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const { stage, start } = await speaker(async () => {
    await opened;
    return { text: answer, chunks: 30, chunkDelayMs: 10 };
  });
  const session = await start('speak');
  const parts: StreamPart[] = [];
  for await (const part of session.stream()) {
    parts.push(part);
    if (part.type === 'phase' && part.phase === 'thinking') open();
  }
  const kinds = parts.map(({ type }) => type);
  const pieces = parts.filter((part) => part.type === 'text');
  expect(pieces.length).toBeGreaterThanOrEqual(3);
  expect(pieces.map(({ text }) => text).join('')).toBe(answer);
  expect(kinds.indexOf('text')).toBeLessThan(kinds.lastIndexOf('message'));
  expect(kinds).not.toContain('reset');
  expect(parts.filter((part) => part.type === 'message' && part.role === 'assistant')).toMatchObject([
    { id: expect.any(String), text: answer, blocks: [{ kind: 'text', text: answer }] },
  ]);
  expect(parts.at(-1)).toMatchObject({ type: 'phase', phase: 'idle' });
  await expectSound(stage, session);
});

test('live text travels sealed, and is opened by the codec of the client', async () => {
  const answer = `A secret: ${words(60)}`;
  const stage = await openStage(() => ({ text: answer, chunks: 30, chunkDelayMs: 60 }));
  const dataConverter = { payloadCodecs: [new Codec()] };
  const speaking = defineAgent({ name: 'speaker', model: stage.provider('m'), instructions: 'Speak.' });
  await stage.startWorker([speaking], { dataConverter });
  const { connection, options } = stage.client;
  const client = new Client({ connection, namespace: options.namespace, dataConverter });
  const sessions = new Sessions(client, { taskQueue: stage.taskQueue });
  const session = await sessions.start('speaker', { id: stage.id(), message: 'speak' });
  const heartbeats: Payload[] = [];
  const parts: StreamPart[] = [];
  for await (const part of session.stream()) {
    parts.push(part);
    const { raw } = await stage.client.workflow.getHandle(session.id).describe();
    for (const { heartbeatDetails } of raw.pendingActivities ?? []) {
      heartbeats.push(...(heartbeatDetails?.payloads ?? []));
    }
  }
  expect(parts.findIndex(({ type }) => type === 'text')).toBeLessThan(
    parts.findLastIndex(({ type }) => type === 'message'),
  );
  expect(parts.filter(({ type }) => type === 'text').length).toBeGreaterThanOrEqual(3);
  expect(screens(parts).at(-1)).toBe(answer);
  const texts = heartbeats.filter(({ data }) => (data?.length ?? 0) > 100);
  expect(texts.length).toBeGreaterThan(0);
  for (const { metadata } of texts)
    expect(SEALED.equals(metadata?.['encoding'] ?? Buffer.alloc(0))).toBe(true);
});

test('a stream costs no history, with any number of readers', async () => {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const { stage, start } = await speaker(async () => {
    await opened;
    return { text: words(40), chunks: 20, chunkDelayMs: 40 };
  });
  const watched = await start('same');
  const screensOf = [1, 2, 3].map(() => {
    const stream = watched.stream();
    const first = stream.next();
    const rest = (async (): Promise<string | undefined> => {
      await first;
      const parts: StreamPart[] = [];
      for await (const part of stream) parts.push(part);
      return screens(parts).at(-1);
    })();
    return { first, rest };
  });
  await Promise.all(screensOf.map(({ first }) => first));
  open();
  for (const { rest } of screensOf) expect(await rest).toBe(words(40));
  const alone = await start('same');
  await untilPhase(alone, 'idle');
  const lengths = await Promise.all(
    [watched, alone].map(
      async ({ id }) => (await stage.client.workflow.getHandle(id).describe()).historyLength,
    ),
  );
  expect(lengths[0]).toBe(lengths[1]);
});

test('a repeated attempt tells the reader to drop what it has', async () => {
  const { stage, start } = await speaker(
    ({ repeat }) =>
      repeat === 0
        ? {
            fault: 'hang',
            reply: { text: `FALSE START ${words(30)}`, chunks: 10, chunkDelayMs: 50 },
            afterChunks: 8,
          }
        : { text: 'the true answer', chunks: 3, chunkDelayMs: 50 },
    1_500,
  );
  const session = await start('speak');
  const parts = await collect(session);
  const seen = screens(parts);
  expect(seen.some((screen) => screen.startsWith('FALSE START'))).toBe(true);
  expect(parts.map(({ type }) => type)).toContain('reset');
  expect(seen.at(-1)).toBe('the true answer');
  await expectSound(stage, session);
});

test('30 KB, read early and late: each screen is the beginning of the answer, the last is the whole, and heartbeats stay small', async () => {
  const answer = Array.from({ length: 1_000 }, (_, i) => `${i}: zażółć gęślą jaźń 🦀`).join('\n');
  const { stage, start } = await speaker(() => ({ text: answer, chunks: 60, chunkDelayMs: 30 }));
  const session = await start('speak');
  const details: number[] = [];
  const watch = (async (): Promise<void> => {
    while ((await session.state()).phase !== 'idle') {
      const { raw } = await stage.client.workflow.getHandle(session.id).describe();
      for (const { heartbeatDetails } of raw.pendingActivities ?? []) {
        for (const { data } of heartbeatDetails?.payloads ?? []) details.push(data?.length ?? 0);
      }
    }
  })();
  const late = (async (): Promise<StreamPart[]> => {
    for await (const part of session.stream()) if (part.type === 'text') break;
    // A client of its own shares no stream with the others.
    const { connection, options } = stage.client;
    const sessions = new Sessions(new Client({ connection, namespace: options.namespace }));
    return collect(sessions.get(session.id), { since: 'start' });
  })();
  const read = await Promise.all([collect(session), late]);
  await watch;
  expect(details.length).toBeGreaterThan(0);
  expect(Math.max(...details)).toBeLessThanOrEqual(8_192);
  for (const parts of read) {
    const seen = screens(parts);
    for (const screen of seen) expect(answer.startsWith(screen)).toBe(true);
    expect(seen.at(-1)).toBe(answer);
  }
  expect(Buffer.byteLength(answer)).toBeGreaterThan(30_000);
  await expectSound(stage, session);
});

test('a stream ends where the session waits, and when the reader goes', async () => {
  const { stage, start } = await speaker(({ lastUserText }) =>
    lastUserText === 'hang' ? { fault: 'hang' } : { fault: 'status', status: 400, message: 'no' },
  );
  const waiting = await start('refuse');
  const parts = await collect(waiting, { until: 'rest' });
  const wait = { reason: 'provider_rejected' };
  expect(parts.at(-1)).toMatchObject({ type: 'phase', phase: 'waiting', view: { wait } });
  expect(parts.filter(({ type }) => type === 'wait')).toMatchObject([{ wait }]);

  const hanging = await start('hang');
  await stage.model.waitFor((requests) => requests.some(({ state }) => state === 'open'));
  const reader = new AbortController();
  const phases: string[] = [];
  for await (const part of hanging.stream({ signal: reader.signal })) {
    if (part.type === 'phase') phases.push(part.phase);
    if (phases.includes('thinking')) reader.abort();
  }
  expect(phases.at(-1)).toBe('thinking');
  expect(await hanging.state()).toMatchObject({ phase: 'thinking' });
  // A reader that breaks out is no different.
  for await (const part of hanging.stream()) if (part.type === 'phase') break;
  await hanging.cancel();
  await hanging.result();
});

test('a stream of a session that is closed gives its end and ends', async () => {
  const { start } = await speaker(() => ({ text: 'bye' }));
  const session = await start('hi');
  await untilPhase(session, 'idle');
  await session.cancel();
  await session.result();
  expect(await collect(session)).toMatchObject([
    { type: 'closed', status: { kind: 'cancelled' } },
    { type: 'phase', phase: 'closed' },
  ]);
});

test('a stream that is opened before the message shows its answer and not the ones before', async () => {
  const { stage, start } = await speaker(({ lastUserText }) => ({
    text: `about ${lastUserText}`,
    chunks: 4,
    chunkDelayMs: 40,
  }));
  const session = await start('one');
  await untilPhase(session, 'idle');
  await session.send('two');
  const parts = await collect(session);
  await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
  expect(screens(parts).at(-1)).toBe('about two');
  await expectSound(stage, session);
});
