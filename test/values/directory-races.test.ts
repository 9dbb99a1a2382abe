/** The protocol of values in a directory of a real file system. */
import { mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { DirectoryValues } from '../../src/index.ts';
import { expectNoneLost, type Step } from './support/races.ts';

/** A call happens at once, when it is its turn. Nothing is synced: the machine stays up, and syncing takes long. */
vi.mock('node:fs/promises', async () => {
  const fs = await import('node:fs');
  const { turn } = await import('./support/races.ts');
  const inTurn =
    <A extends unknown[], T>(call: (...args: A) => T) =>
    async (...args: A): Promise<T> => {
      await turn();
      return call(...args);
    };
  const open = (path: string): object => {
    const file = fs.openSync(path, 'r');
    return { sync: inTurn(() => undefined), close: inTurn(() => fs.closeSync(file)) };
  };
  const writeFile = (path: string, bytes: Uint8Array): void => fs.writeFileSync(path, bytes);
  return {
    mkdir: inTurn(fs.mkdirSync),
    open: inTurn(open),
    readdir: inTurn(fs.readdirSync),
    readFile: inTurn(fs.readFileSync),
    rename: inTurn(fs.renameSync),
    rm: inTurn(fs.rmSync),
    rmdir: inTurn(fs.rmdirSync),
    stat: inTurn(fs.statSync),
    writeFile: inTurn(writeFile),
  };
});

/** A new value is renamed to the name under which another process removes the old one. */
const SAME_NAME: Step[] = [
  [3, 4],
  [4, 3],
  [1, 8],
  [1, 8],
  [1, 4],
  [3, 1],
  [4, 2],
];

/** A value is shared after its remover has seen no owner. */
const SHARED_LATE: Step[] = [
  [3, 6],
  [0, 8],
];

/** A value is stored, and the old one is put back over it. */
const PUT_BACK_OLD: Step[] = [
  [3, 5],
  [1, 6],
  [0, 5],
  [2, 3],
];

test('whoever has stored or shared a value has it, however others remove it, and at last nothing is left', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'values-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = (): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  const open = () => {
    for (const file of files()) rmSync(file);
    return {
      store: new DirectoryValues(folder),
      age: () => {
        for (const file of files()) utimesSync(file, 0, 0);
      },
      left: files,
    };
  };
  const known = [SAME_NAME, SHARED_LATE, PUT_BACK_OLD];
  await expect(expectNoneLost(open, 150, ...known)).resolves.toBeUndefined();
});
