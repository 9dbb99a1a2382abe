import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { MemorySaver, SqliteSaver } from '../../src/index.ts';
import { checkpointSaverConformance } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { agree } from './support/agreement.ts';

let dir = '';
let files = 0;
const paths = new Map<object, string>();
const newFile = (): string => join(dir, `${files++}.db`);

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdure-sqlite-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

checkpointSaverConformance(
  {
    name: 'SqliteSaver',
    create: (clock) => {
      const path = newFile();
      const saver = new SqliteSaver(path, clock);
      paths.set(saver, path);
      return saver;
    },
    // The first is not closed: its process may have been killed.
    reopen: (saver) => new SqliteSaver(paths.get(saver) ?? ''),
    destroy: (saver) => (saver as SqliteSaver).close(),
  },
  { describe, it },
);

/** Changes a file behind the saver's back. */
function edit(path: string, sql: string): void {
  const db = new Database(path);
  db.exec(sql);
  db.close();
}

describe('SqliteSaver', () => {
  test('delete a middle version; resume still works', async () => {
    const path = newFile();
    const saver = new SqliteSaver(path);
    const ids: string[] = [];
    for (let turn = 1; turn <= 4; turn++) {
      ids.push((await saver.put('t', { turn }, { parentId: ids.at(-1) ?? null })).id);
    }
    edit(path, `DELETE FROM checkpoints WHERE id = '${ids[1]}'`);
    expect((await saver.get('t'))?.state).toEqual({ turn: 4 });
    expect((await saver.list('t')).map(({ state }) => state['turn'])).toEqual([4, 3, 1]);
    expect(await saver.list('t', { before: ids[1] })).toEqual([]);
    const next = await saver.put('t', { turn: 5 }, { parentId: ids[3] });
    expect(await saver.get('t')).toEqual(next);
    await saver.close();
  });

  test("never gives a deleted latest version's place to the next", async () => {
    const path = newFile();
    const saver = new SqliteSaver(path);
    await saver.put('t', { turn: 1 }, { id: 'one' });
    await saver.put('t', { turn: 2 }, { id: 'two' });
    edit(path, "DELETE FROM checkpoints WHERE id = 'two'");
    await saver.put('t', { turn: 3 }, { id: 'three' });
    const db = new Database(path);
    expect(db.prepare('SELECT seq FROM checkpoints ORDER BY seq').all()).toMatchObject([
      { seq: 1 },
      { seq: 3 },
    ]);
    db.close();
    await saver.close();
  });

  test('drops a write that another process has overtaken with a deletion', async () => {
    const path = newFile();
    const [mine, theirs] = [new SqliteSaver(path), new SqliteSaver(path)];
    await mine.put('t', { n: 0 });
    // The deletion runs between the write's first look and its transaction.
    const now = (): number => {
      edit(path, "DELETE FROM checkpoints; INSERT INTO threads VALUES ('t', 1)");
      return 0;
    };
    const late = new SqliteSaver(path, { now });
    expect(await rejection(late.put('t', { n: 1 }))).toMatchObject({ code: 'CONFLICT' });
    expect(await theirs.list('t')).toEqual([]);
    expect((await mine.put('t', { n: 2 })).state).toEqual({ n: 2 });
    await Promise.all([mine.close(), theirs.close(), late.close()]);
  });

  test('two savers on one file keep one order', async () => {
    const path = newFile();
    const [first, second] = [new SqliteSaver(path), new SqliteSaver(path)];
    const savers = [first, second];
    await Promise.all(Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? first : second).put('t', { n })));
    const [a, b] = await Promise.all(savers.map((saver) => saver.list('t', { limit: 50 })));
    expect(a).toHaveLength(40);
    expect(a).toEqual(b);
    await Promise.all(savers.map((saver) => saver.close()));
  });

  test('refuses a file of an unknown version, of another program, that is no database, or cannot be made', async () => {
    const [newer, foreign, text] = [newFile(), newFile(), newFile()];
    const first = new SqliteSaver(newer);
    await first.put('t', {});
    await first.close();
    edit(newer, 'PRAGMA user_version = 2');
    edit(foreign, 'CREATE TABLE theirs (a)');
    await writeFile(text, 'plainly no database\n'.repeat(500));
    for (const [path, code, words] of [
      [newer, 'CHECKPOINT_CORRUPTION', 'schema version 2'],
      [foreign, 'CHECKPOINT_CORRUPTION', 'another program'],
      [text, 'CHECKPOINT_CORRUPTION', 'no checkpoint database'],
      [join(dir, 'no', 'such', 'dir.db'), 'INVALID_ARGUMENT', 'cannot be opened'],
    ] as const) {
      const saver = new SqliteSaver(path);
      expect(await rejection(saver.get('t'))).toMatchObject({
        code,
        message: expect.stringContaining(words),
      });
      expect(await rejection(saver.put('t', {}))).toMatchObject({ code });
      await saver.close();
    }
  });

  test('a row that was damaged fails closed', async () => {
    const path = newFile();
    const saver = new SqliteSaver(path);
    await saver.put('t', {}, { id: 'x' });
    edit(path, `UPDATE checkpoints SET state = '{"a":'`);
    expect(await rejection(saver.get('t'))).toMatchObject({ code: 'CHECKPOINT_CORRUPTION' });
    await saver.close();
  });

  test('says that it is closed', async () => {
    const saver = new SqliteSaver(newFile());
    await saver.put('t', {});
    await saver.close();
    await saver.close();
    expect(await rejection(saver.get('t'))).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('agrees with memory on any run of calls', async () => {
    expect(await agree(new SqliteSaver(newFile()), new MemorySaver())).toBeGreaterThan(500);
  });
});
