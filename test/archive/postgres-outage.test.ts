import type { Connection } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { archiveStatus, openArchive } from '../../src/archive/door.ts';
import { run } from '../cli/support/perdure.ts';
import { rejection } from '../support/rejection.ts';
import { untilPhase } from '../support/stage.ts';
import { HOMES, type PostgresHome, startPostgresHome } from './homes.ts';
import { expectAllArchived, startArchiveServer } from './support.ts';

const missing = HOMES.find(({ name }) => name === 'postgres')?.missing ?? null;
const reason = missing === null ? '' : `, skipped because ${missing}`;

async function openHome(): Promise<PostgresHome> {
  const home = await startPostgresHome();
  onTestFinished(() => home.stop());
  return home;
}

test.skipIf(missing !== null)(
  `an exporter lives through the end of its PostgreSQL: what it lags behind is seen meanwhile, and nothing is left out${reason}`,
  async () => {
    const home = await openHome();
    const server = await startArchiveServer(home);
    onTestFinished(() => server.close());
    const stage = await server.open();
    const session = await stage.talk('one');
    await stage.startExporter();
    await stage.untilArchived(session.id);
    const status = () => archiveStatus(stage.client, stage.name);
    await expect.poll(async () => (await status()).upTo, { timeout: 60_000 }).not.toBeNull();

    await home.down();
    const downAt = Date.now();
    await session.send('two');
    await untilPhase(session, 'idle');
    await expect
      .poll(async () => (await status()).failure, { timeout: 60_000 })
      .toMatchObject({
        code: 'SERVER_UNAVAILABLE',
        message: expect.stringContaining('cannot be used'),
        attempts: expect.any(Number),
      });
    const first = await status();
    expect(Date.parse(first.failure?.since ?? '')).toBeGreaterThanOrEqual(downAt - 1_000);
    // The age of this is its lag, which grows while it is away.
    expect(Date.parse(first.upTo ?? '')).toBeLessThan(downAt);
    const { connection, options } = stage.client;
    const env = {
      TEMPORAL_ADDRESS: (connection as Connection).options.address,
      TEMPORAL_NAMESPACE: options.namespace,
      PERDURE_ARCHIVE: stage.home.place,
    };
    const shown = await run(['archive', '--name', stage.name, '--status'], { env });
    expect(shown.stdout).toMatch(/cannot be read: .*cannot be used/);
    expect(shown.stdout).toMatch(
      new RegExp(`cannot store since ${first.failure?.since} \\(\\d+ attempts\\): .*cannot be used`),
    );
    expect(shown.code).toBe(5);
    // Its readers are told, too.
    expect(await rejection(stage.archive.status())).toMatchObject({ code: 'SERVER_UNAVAILABLE' });
    await expect
      .poll(async () => (await status()).failure?.attempts ?? 0, { timeout: 60_000 })
      .toBeGreaterThan(first.failure?.attempts ?? 0);
    const later = await status();
    expect({ ...later, failure: { ...later.failure, attempts: 0 } }).toEqual({
      ...first,
      failure: { ...later.failure, since: first.failure?.since, attempts: 0 },
    });

    await home.up();
    const upAt = Date.now();
    const stored = await stage.untilArchived(session.id);
    await expect
      .poll(async () => Date.parse((await status()).upTo ?? ''), { timeout: 90_000 })
      .toBeGreaterThan(upAt);
    expect(await status()).toMatchObject({ archiveId: first.archiveId, failure: null, unreadable: [] });
    await expectAllArchived(stage, session.id, stored);
  },
);

test.skipIf(missing !== null)(
  `a write whose PostgreSQL is ended in the middle fails with a code, stores nothing and ends no process${reason}`,
  async () => {
    const home = await openHome();
    const { place, lock } = await home.newPlace();
    const archive = openArchive(place);
    onTestFinished(() => archive.close());
    await archive.setUpTo('2024-05-01T00:00:00.000Z');
    await lock();
    const write = rejection(archive.setUpTo('2024-05-02T00:00:00.000Z'));
    const waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    await expect.poll(() => home.ask(place, waiting), { interval: 5 }).toBe('1');
    await home.down();
    expect(await write).toMatchObject({ code: 'SERVER_UNAVAILABLE' });
    await home.up();
    expect((await archive.status()).upTo).toBe('2024-05-01T00:00:00.000Z');
    await archive.setUpTo('2024-05-03T00:00:00.000Z');
    expect((await archive.status()).upTo).toBe('2024-05-03T00:00:00.000Z');
  },
);
