/** An archive whose file cannot grow: SQLite itself is told the most pages that it may use. */
import type Database from 'libsql';
import { expect, onTestFinished, test, vi } from 'vitest';
import { archiveStatus, auditSession } from '../../src/archive/door.ts';
import { rejection } from '../support/rejection.ts';
import { untilPhase } from '../support/stage.ts';
import { startSqlite } from './homes.ts';
import { expectAllArchived, startArchiveServer } from './support.ts';

/** The least: what the file has already. */
const FULL = 'max_page_count = 1';
/** Connections that are open, of this process. */
const room = vi.hoisted(() => ({ taken: false, open: new Set<{ pragma(sql: string): unknown }>() }));

// The limit is of a connection, and the exporter opens its own: the driver is as it is, but for what it is told.
vi.mock('libsql', async (original) => {
  const { default: Driver } = await original<{ default: typeof Database }>();
  return {
    default: class extends Driver {
      constructor(path: string, options?: Database.Options) {
        super(path, options);
        room.open.add(this);
        if (room.taken) this.pragma(FULL);
      }
      override close(): this {
        room.open.delete(this);
        return super.close();
      }
    },
  };
});

function takeRoom(): void {
  room.taken = true;
  for (const connection of room.open) connection.pragma(FULL);
  onTestFinished(giveRoom);
}

function giveRoom(): void {
  room.taken = false;
  for (const connection of room.open) connection.pragma('max_page_count = 1000000');
}

test('an archive that is full says so in its status and tries again, and lacks nothing once there is room', async () => {
  const home = await startSqlite();
  onTestFinished(() => home.stop());
  const server = await startArchiveServer(home);
  onTestFinished(() => server.close());
  const stage = await server.open();
  const session = await stage.talk('one');
  await stage.startExporter();
  const before = await stage.untilArchived(session.id);
  const status = () => archiveStatus(stage.client, stage.name);
  await expect.poll(async () => (await status()).upTo, { timeout: 60_000 }).not.toBeNull();

  takeRoom();
  await session.send('x'.repeat(50_000));
  await untilPhase(session, 'idle');
  await expect
    .poll(async () => (await status()).failure, { timeout: 60_000 })
    .toMatchObject({ code: 'SQLITE_FULL', message: expect.stringContaining('database or disk is full') });
  const first = await status();
  const attempts = first.failure?.attempts ?? 0;
  await expect
    .poll(async () => (await status()).failure?.attempts, { timeout: 60_000 })
    .toBeGreaterThan(attempts);
  const later = await status();
  expect(later.failure?.since).toBe(first.failure?.since);
  // What it says to have is what it has: nothing of the piece that did not fit, and all that came before.
  expect(later).toMatchObject({ archiveId: first.archiveId, stored: first.stored, upTo: first.upTo });
  expect(await stage.archive.list(session.id, null, 1_000)).toEqual(before);
  const audit = await auditSession(stage.client, stage.archive, session.id);
  expect(audit).toMatchObject({ equal: before.length, difference: null });
  expect(audit.pending).toBeGreaterThan(0);

  giveRoom();
  const stored = await stage.untilArchived(session.id);
  await expect.poll(async () => (await status()).failure, { timeout: 90_000 }).toBeNull();
  expect(await status()).toMatchObject({ archiveId: first.archiveId, unreadable: [] });
  await expectAllArchived(stage, session.id, stored);
});

test('an archive for which there is no room at its first opening is made once there is', async () => {
  const home = await startSqlite();
  onTestFinished(() => home.stop());
  const server = await startArchiveServer(home);
  onTestFinished(() => server.close());
  takeRoom();
  const stage = await server.open();
  expect(await rejection(stage.archive.status())).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('database or disk is full'),
  });
  const session = await stage.talk('one');
  await stage.startExporter();
  await expect
    .poll(async () => (await archiveStatus(stage.client, stage.name)).failure?.message ?? '', {
      timeout: 60_000,
    })
    .toContain('database or disk is full');
  giveRoom();
  const stored = await stage.untilArchived(session.id);
  await expectAllArchived(stage, session.id, stored);
});
