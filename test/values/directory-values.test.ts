import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { DirectoryValues } from '../../src/index.ts';
import { expectOwnership, expectYouth } from './support/store-behaviour.ts';

function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'values-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('a value is there until its last owner leaves, and then nothing is left', async () => {
  const folder = openFolder();
  await expectOwnership(new DirectoryValues(folder));
  const left = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  expect(left).toEqual([]);
});

test('a value that was stored again is as young as a new one', async () => {
  // A file system rounds times to the ticks of its kernel.
  await expect(expectYouth(new DirectoryValues(openFolder()), 20)).resolves.toBeUndefined();
});

test('three processes that store and remove one value at once: who has stored it, has it', async () => {
  const folder = openFolder();
  const child = new URL('./support/store-and-release.ts', import.meta.url);
  const ends = ['p', 'q', 'r'].map(async (owner) => {
    const run = fork(child, [folder, owner], { execArgv: ['--import', 'tsx'] });
    return (await once(run, 'exit')) as [number];
  });
  expect((await Promise.all(ends)).map(([code]) => code)).toEqual([0, 0, 0]);
});
