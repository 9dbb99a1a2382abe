/** An archive whose rows somebody has changed behind its back. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Driver from 'libsql';
import { expect, onTestFinished, test } from 'vitest';
import { ArchivedSaver, SqliteArchive } from '../../src/archive/door.ts';
import { type Checkpoint, MemorySaver } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';

const RUN = '00000000-0000-4000-8000-000000000001';
const SESSION = 'ticket';
const ID = (event: number): string => `${RUN}:${event}`;

function record(step: number): Checkpoint {
  return {
    id: ID(step * 3),
    thread_id: SESSION,
    created_at: '2026-01-01T00:00:00.000Z',
    // Long enough that a later state is written as what changed.
    state: { turns: Array.from({ length: step }, (_, turn) => turn), text: 'x'.repeat(1_000) },
    parent_id: step === 1 ? null : ID(step * 3 - 3),
    metadata: { source: 'session', step },
  };
}

async function openDamaged(
  sql: string,
): Promise<{ archive: SqliteArchive; records: Checkpoint[]; path: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'damaged-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'archive.db');
  const archive = new SqliteArchive(path);
  onTestFinished(() => archive.close());
  const records = [1, 2, 3, 4, 5].map(record);
  expect(await archive.append(piece(0, records, null))).not.toBeNull();
  const db = new Driver(path);
  db.exec(sql);
  db.close();
  return { archive, records, path };
}

function piece(after: number, checkpoints: Checkpoint[], previous: Checkpoint | null) {
  const place = { sessionId: SESSION, runId: RUN, startedAt: 1, epoch: 0, after };
  return { ...place, checkpoints, previous, events: 99, complete: false };
}

test('a deleted middle row is named, and the list goes on around it with marks', async () => {
  const { archive, records } = await openDamaged('DELETE FROM checkpoints WHERE event_id = 9');
  const missing = `the row of checkpoint ${ID(9)} is missing`;
  expect(await rejection(archive.get(SESSION, ID(15)))).toMatchObject({
    code: 'CHECKPOINT_CORRUPTION',
    message: expect.stringContaining(missing),
    details: { checkpointId: ID(15) },
  });
  expect(await archive.get(SESSION, ID(6))).toEqual(records[1]);
  const list = await archive.list(SESSION, null, 10);
  expect(list.map(({ id }) => id)).toEqual([ID(15), ID(12), ID(6), ID(3)]);
  expect(list.slice(0, 2)).toMatchObject(
    [1, 2].map(() => ({ state: {}, metadata: { unreadable: missing } })),
  );
  expect(list.slice(2)).toEqual([records[1], records[0]]);
});

test('a damaged latest record is refused, not returned without its state', async () => {
  const { archive } = await openDamaged("UPDATE checkpoints SET digest = 'other' WHERE event_id = 15");
  const saver = new ArchivedSaver(new MemorySaver(), archive);
  expect(await rejection(saver.get(SESSION))).toMatchObject({
    code: 'CHECKPOINT_CORRUPTION',
    details: { checkpointId: ID(15) },
  });
});

test('a cursor that was set back does not block the exporter: it stores what follows anew', async () => {
  const { archive, records } = await openDamaged('UPDATE runs SET cursor = 6');
  const rest = records.slice(2);
  expect(await archive.append(piece(6, [...rest, record(6)], records[1] ?? null))).toMatchObject({
    cursor: 18,
  });
  expect(await archive.list(SESSION, null, 10)).toEqual([...records, record(6)].reverse());
});

test.skipIf(process.platform === 'win32')(
  'only its owner can read an archive, and the files beside it',
  async () => {
    const { archive, path } = await openDamaged('SELECT 1');
    await archive.append(piece(15, [record(6)], record(5)));
    for (const file of [path, `${path}-wal`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  },
);
