/** Reading a past that is larger than memory: in pages, it fits. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, inject, test } from 'vitest';
import { defineAgent } from '../../src/index.ts';
import { openStage, untilPhase } from '../support/stage.ts';

/** Megabytes of JavaScript objects that the reading process may hold. */
const HEAP_MB = 96;
const TURNS = 40;

interface Pages {
  checkpoints: number;
  distinct: number;
  bytes: number;
}

/** Reads a session's checkpoints in a process with a bound on its memory; `null` when that is not enough. */
async function readPages(args: readonly string[]): Promise<Pages | null> {
  const node = [`--max-old-space-size=${HEAP_MB}`, '--import', 'tsx', 'test/saver/support/list-pages.ts'];
  const child = spawn(process.execPath, [...node, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [said, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  if (code === 0) return JSON.parse(said) as Pages;
  expect(errors).toContain('heap out of memory');
  return null;
}

test('a session whose states are together many times the memory of its reader is listed in pages', async () => {
  const stage = await openStage(() => ({ text: 'read' }));
  await stage.startWorker([
    defineAgent({ name: 'reader', model: stage.provider('scripted'), instructions: 'Read.', tools: {} }),
  ]);
  const session = await stage.sessions.start('reader', { id: stage.id() });
  for (let turn = 0; turn < TURNS; turn++) {
    await session.send(`${turn} ${'x'.repeat(100_000)}`);
    await untilPhase(session, 'idle');
  }
  const { address } = inject('temporal');
  const to = [address, stage.client.options.namespace, session.id];

  const inPages = await readPages([...to, '2']);
  expect(inPages?.distinct).toBe(inPages?.checkpoints);
  expect(inPages?.bytes).toBeGreaterThan(HEAP_MB * 1_000_000 * 1.5);
  // The bound holds: all at once they do not fit.
  expect(await readPages([...to, '1000'])).toBeNull();
});
