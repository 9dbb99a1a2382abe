/** An archive holds no plain text when it has the codec of the sessions. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openArchive } from '../../src/archive/door.ts';
import { startSqlite } from '../archive/homes.ts';
import { useArchiveServer } from '../archive/support.ts';
import { rejection } from '../support/rejection.ts';
import { withKeys } from './support.ts';

const MARKER = 'xylophone-4711';
const server = useArchiveServer(startSqlite);

test('an exporter with the codec encrypts its archive, which opens with the codec and no other key', async () => {
  const stage = await server.open();
  const { place } = stage.home;
  const stop = await stage.startExporter({ dataConverter: withKeys('old') });
  const session = await stage.talk(`hear ${MARKER}`, 'more');
  const wanted = await stage.present(session.id);
  const open = (...keys: ('old' | 'new')[]): typeof stage.archive => {
    const archive = openArchive(place, { dataConverter: withKeys(...keys) });
    onTestFinished(() => archive.close());
    return archive;
  };
  const archive = open('old', 'new');
  await expect
    .poll(async () => (await archive.list(session.id, null, 1_000)).length, { timeout: 90_000 })
    .toBe(wanted.length);
  await stop();
  expect(await archive.list(session.id, null, 1_000)).toEqual(wanted);

  const id = wanted[0]?.id ?? '';
  expect(await rejection(stage.archive.get(session.id, id))).toMatchObject({ code: 'ENCRYPTED' });
  expect(await rejection(open('new').get(session.id, id))).toMatchObject({
    code: 'UNKNOWN_KEY',
    details: { keyId: 'old' },
  });
  const [unreadable] = await stage.archive.list(session.id, null, 1);
  expect(unreadable).toMatchObject({
    id,
    state: {},
    metadata: { unreadable: expect.stringContaining('is encrypted') },
  });

  const files = readdirSync(dirname(place)).filter((name) => name.startsWith(basename(place)));
  const bytes = Buffer.concat(files.map((name) => readFileSync(join(dirname(place), name))));
  expect(bytes.includes(session.id)).toBe(true);
  expect(bytes.includes(MARKER)).toBe(false);
});
