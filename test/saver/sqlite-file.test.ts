import { expect, test } from 'vitest';
import { inTransaction, openDatabase } from '../../src/saver/sqlite-file.ts';

test('a transaction that a full disk has ended says so, stores nothing, and the next one goes through', async () => {
  const db = await openDatabase(':memory:');
  const put = (id: string, state: string): unknown =>
    inTransaction(db, () => {
      db.prepare('INSERT INTO steps VALUES (?, ?, ?, ?)').run('thread', `${id} before`, '1', '');
      return db.prepare('INSERT INTO steps VALUES (?, ?, ?, ?)').run('thread', id, state, '');
    });
  db.pragma('max_page_count = 20');
  expect(() => put('large', 'x'.repeat(200_000))).toThrow('database or disk is full');
  put('small', '1');
  expect(db.prepare('SELECT key FROM steps ORDER BY key').all()).toEqual([
    { key: 'small' },
    { key: 'small before' },
  ]);
  expect(() => put('small', '2')).toThrow('UNIQUE');
  db.close();
});
