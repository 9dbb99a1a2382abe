import { expect, test } from 'vitest';
import { openArchive, PostgresArchive, SqliteArchive } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { HOMES } from './homes.ts';

const postgres = HOMES.find(({ name }) => name === 'postgres');

test('a server that is not there is said, without the password, and the archive is asked again at the next call', async () => {
  const archive = openArchive('postgres://ada:secret@127.0.0.1:1/archive');
  expect(archive).toBeInstanceOf(PostgresArchive);
  for (let call = 0; call < 2; call++) {
    const error = await rejection(archive.status());
    expect(error).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('postgres://127.0.0.1:1/archive cannot be used'),
    });
    expect(JSON.stringify(error)).not.toContain('secret');
  }
  expect(openArchive('archive.sqlite')).toBeInstanceOf(SqliteArchive);
  expect(() => new PostgresArchive('archive.sqlite')).toThrow(/^url: write postgres/);
});

test.skipIf(postgres?.missing !== null)(
  'who opens a new database at the same time makes one archive, and who comes later finds it',
  async ({ onTestFinished }) => {
    const home = await postgres?.start();
    if (home === undefined) throw new Error('no home');
    onTestFinished(() => home.stop());
    const place = await home.newPlace();
    const archives = Array.from({ length: 5 }, () => openArchive(place.place));
    const opened = await Promise.all(archives.map((archive) => archive.status()));
    expect(new Set(opened.map(({ archiveId }) => archiveId)).size).toBe(1);
    await Promise.all(archives.map((archive) => archive.close()));
    const later = openArchive(place.place);
    expect(await later.status()).toEqual(opened[0]);
    expect(await rejection(later.claim('id', 'name', 'another'))).toMatchObject({ code: 'CONFLICT' });
    await later.close();
    await place.close();
  },
);
