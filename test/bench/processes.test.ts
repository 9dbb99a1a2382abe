/** Measured processes that do not do what they should: none of them holds the bench up. */
import { fork } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Context } from '../../bench/support/context.ts';
import { Talk } from '../../bench/support/processes.ts';

interface Word {
  event: string;
}

async function talkTo(program: string, execPath: string = process.execPath): Promise<Talk<Word>> {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'program.cjs'), program);
  const talk = new Talk<Word>('it', fork(join(folder, 'program.cjs'), [], { execPath, execArgv: [] }));
  onTestFinished(() => talk.kill());
  return talk;
}

const STAYS = 'process.on("message", () => {}); process.send({ event: "ready" });';

test('one that is stuck is ended, and each later wait fails at once', async () => {
  const talk = await talkTo(STAYS);
  await talk.said('ready');
  await expect(talk.said('ran', undefined, 50)).rejects.toThrow('it has not said ran within 0.05 s');
  expect(talk.child.signalCode).toBe('SIGKILL');
  talk.child.send({ event: 'again' });
  await expect(talk.said('ran')).rejects.toThrow('it ended with SIGKILL');
});

test('one that ends says how, and one that cannot be started too; to kill them is nothing', async () => {
  const ended = await talkTo('process.exit(3)');
  await expect(ended.said('ready')).rejects.toThrow('it ended with 3');
  await ended.kill();
  const never = await talkTo(STAYS, join(tmpdir(), 'no-such-node'));
  await expect(never.said('ready')).rejects.toThrow('it cannot be started');
  await never.kill();
});

test('the context ends its processes and all else, whatever one of the ends does, and once', async () => {
  const context = new Context({ quick: true });
  const ends: string[] = [];
  const directory = await context.temporaryDir();
  context.onClose(async () => void ends.push('first'));
  context.onClose(() => Promise.reject(new Error('an end that does not work')));
  context.onClose(async () => void ends.push('last'));
  const talk = await talkTo(STAYS);
  await talk.said('ready');
  await Promise.all([context.close(), context.close()]);
  expect(ends).toEqual(['last', 'first']);
  expect(talk.child.signalCode).toBe('SIGKILL');
  await expect(writeFile(join(directory, 'file'), '')).rejects.toThrow('ENOENT');
  await expect(context.temporaryDir()).rejects.toThrow('being ended');
});
