/** A stream through the death of a worker, and of the server. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Session, StreamPart } from '../../src/index.ts';
import { startServer } from '../../src/server/index.ts';
import { createHarness, type Script } from '../../src/testing/index.ts';
import { openWorld } from '../support/world.ts';

const words = (n: number): string => Array.from({ length: n }, (_, i) => `word${i}`).join(' ');

/** More than a heartbeat holds. */
const TRUE = `true ${words(4_000)}`;

/** The first reply is slow, and its worker will not live to record it. */
const slowFirst: Script = ({ repeat }) =>
  repeat === 0
    ? { text: `FALSE START ${words(100)}`, chunks: 100, chunkDelayMs: 300 }
    : { text: TRUE, chunks: 40, chunkDelayMs: 30 };

/** Follows a session until it is idle. */
function follow(session: Session): { parts: StreamPart[]; end: Promise<void> } {
  const parts: StreamPart[] = [];
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const read = async (): Promise<void> => {
    for await (const part of session.stream({ since: 'start', signal: gone.signal })) parts.push(part);
  };
  return { parts, end: read() };
}

/** What a reader has on its screen after each part. */
function screens(parts: readonly StreamPart[]): string[] {
  let screen = '';
  return parts.map((part) => {
    if (part.type === 'reset') screen = '';
    if (part.type === 'text') screen += part.text;
    return screen;
  });
}

function cursors(parts: readonly StreamPart[]): string[] {
  return parts.flatMap((part) => ('cursor' in part ? [part.cursor] : []));
}

test('a worker that is killed in mid-answer: the reader drops what it has, and gets the whole of the next answer', async () => {
  const world = await openWorld(slowFirst);
  const first = await world.startWorkerProcess();
  const session = await world.begin();
  const { parts, end } = follow(session);
  // From a worker in another process the text comes in pieces, too.
  const pieces = (): number => parts.filter(({ type }) => type === 'text').length;
  await expect.poll(pieces).toBeGreaterThan(2);
  expect(screens(parts).at(-1)).toMatch(/^FALSE START word0/);
  await first.crash();
  await world.startWorkerProcess();
  await end;
  const seen = screens(parts);
  expect(parts.filter(({ type }) => type === 'reset')).toHaveLength(1);
  expect(seen.at(-1)).toBe(TRUE);
  for (const screen of seen)
    expect([`FALSE START ${words(100)}`, seen.at(-1)].some((whole) => whole?.startsWith(screen))).toBe(true);
  expect(new Set(cursors(parts)).size).toBe(cursors(parts).length);
  expect(parts.filter(({ type }) => type === 'notice')).toMatchObject([{ notice: { kind: 'worker_lost' } }]);
  await world.check(session);
});

test('a server that is killed and comes back: the reader goes on, with nothing twice and nothing missing', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdure-stream-'));
  const server = await startServer({ dir });
  onTestFinished(async () => {
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  });
  const harness = await createHarness({
    script: () => ({ text: words(30), chunks: 10, chunkDelayMs: 50 }),
    agents: [],
    module: new URL('../support/effect-agents.ts', import.meta.url),
    server,
  });
  onTestFinished(() => harness.stop());
  await harness.startWorkerProcess();
  const session = await harness.startSession('effects', { message: 'one' });
  await harness.until(session, 'idle');
  const parts: StreamPart[] = [];
  const reader = new AbortController();
  onTestFinished(() => reader.abort());
  const reading = (async (): Promise<void> => {
    const stream = session.stream({ since: 'start', until: 'closed', signal: reader.signal });
    for await (const part of stream) parts.push(part);
  })();
  const answers = (): string[] =>
    parts.flatMap((part) => (part.type === 'message' && part.role === 'assistant' ? [part.text] : []));
  await expect.poll(answers).toHaveLength(1);

  await server.kill();
  await server.restart();
  await expect
    .poll(
      () =>
        session
          .send('two')
          .then(() => true)
          .catch(() => false),
      { timeout: 60_000 },
    )
    .toBe(true);
  await expect.poll(answers, { timeout: 60_000 }).toHaveLength(2);
  await session.cancel();
  await reading;
  expect(parts.at(-1)).toMatchObject({ type: 'phase', phase: 'closed' });
  const told = cursors(parts);
  expect(new Set(told).size).toBe(told.length);
  const again: StreamPart[] = [];
  for await (const part of session.stream({ since: 'start' })) again.push(part);
  expect(cursors(again)).toEqual(told);
});
