/** Reading a past whose states are together larger than memory. */
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

/** Reads a session's checkpoints in a process with a bound on its memory. */
async function readPages(args: readonly string[]): Promise<Pages> {
  const node = [`--max-old-space-size=${HEAP_MB}`, '--import', 'tsx', 'test/saver/support/list-pages.ts'];
  const child = spawn(process.execPath, [...node, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [said, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  expect(code, errors).toBe(0);
  return JSON.parse(said) as Pages;
}

test('a session whose states are together larger than the memory of its reader is listed, in pages and at once', async () => {
  const stage = await openStage(() => ({ text: 'read' }));
  await stage.startWorker([
    // One run: what has left a run for a piece is not in its states.
    defineAgent({
      name: 'reader',
      model: stage.provider('scripted'),
      instructions: 'Read.',
      tools: {},
      runTurns: false,
    }),
  ]);
  const session = await stage.sessions.start('reader', { id: stage.id() });
  for (let turn = 0; turn < TURNS; turn++) {
    await session.send(`${turn} ${'x'.repeat(100_000)}`);
    await untilPhase(session, 'idle');
  }
  const { address } = inject('temporal');
  const to = [address, stage.client.options.namespace, session.id];

  const inPages = await readPages([...to, '2']);
  expect(inPages.distinct).toBe(inPages.checkpoints);
  expect(inPages.bytes).toBeGreaterThan(HEAP_MB * 1_000_000 * 1.5);
  // States of one history share what they have in common.
  expect(await readPages([...to, '1000'])).toEqual(inPages);
});
