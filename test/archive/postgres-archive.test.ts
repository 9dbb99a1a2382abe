import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { archiveStatus, openArchive, PostgresArchive, SqliteArchive } from '../../src/archive/door.ts';
import { createArchiveActivities } from '../../src/archive/index.ts';
import { rejection } from '../support/rejection.ts';
import { HOMES, startSqlite } from './homes.ts';
import { startArchiveServer } from './support.ts';

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

test('a URL is known by its scheme however that is written, and no file is made of one that is not right', async () => {
  expect(openArchive('PostgreSQL://ada:secret@127.0.0.1:1/archive')).toBeInstanceOf(PostgresArchive);
  for (const url of [
    'postgres:/ada:secret@127.0.0.1/archive',
    'postgres:ada:secret@127.0.0.1/archive',
    ' postgres://ada:secret@127.0.0.1/archive',
    'mysql://ada:secret@127.0.0.1/archive',
    'postgres://ada:12/secret@127.0.0.1/archive',
  ]) {
    const error = await rejection(Promise.resolve().then(() => openArchive(url)));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(String((error as Error).message)).not.toContain('secret');
    expect(JSON.stringify(error)).not.toContain('secret');
  }
  expect(() => createArchiveActivities({ path: 'postgres:/ada:secret@127.0.0.1/archive' })).toThrow('path: ');
});

interface Proxy {
  port: number;
  fall(): void;
  /** What it has got since then. */
  swallowed(): string;
}

/** A proxy that passes everything on, until it is told to pass nothing any more; without a target it never does. */
async function startProxy(target?: { host: string; port: number }): Promise<Proxy> {
  let swallowed = '';
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  const server = createServer((incoming) => {
    keep(incoming);
    if (target === undefined) return;
    const outgoing = keep(connect(target));
    incoming.pipe(outgoing).pipe(incoming);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    port: (server.address() as AddressInfo).port,
    fall: () => {
      for (const socket of sockets) {
        socket.unpipe().on('data', (bytes: Buffer) => {
          swallowed += bytes.toString('latin1');
        });
        socket.resume();
      }
    },
    swallowed: () => swallowed,
  };
}

test('a server that takes connections and says nothing is named as what stands in the way', async () => {
  const { port } = await startProxy();
  const files = await startSqlite();
  onTestFinished(() => files.stop());
  const place = `postgres://ada:secret@127.0.0.1:${port}/archive`;
  const home = { ...files, newPlace: async () => ({ ...(await files.newPlace()), place }) };
  const server = await startArchiveServer(home);
  onTestFinished(() => server.close());
  const stage = await server.open();
  await stage.startExporter();
  await expect
    .poll(async () => (await archiveStatus(stage.client, stage.name)).failure, { timeout: 60_000 })
    .toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining(`postgres://127.0.0.1:${port}/archive cannot be used`),
    });
});

test.skipIf(postgres?.missing !== null)(
  'a server that is lost in the middle fails what it was asked, once',
  async () => {
    const home = await postgres?.start();
    if (home === undefined) throw new Error('no home');
    onTestFinished(() => home.stop());
    const { place } = await home.newPlace();
    const url = new URL(place);
    const proxy = await startProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    url.hostname = '127.0.0.1';
    url.searchParams.set('query_timeout', '4000');
    const archive = openArchive(url.href);
    await archive.setUpTo('2024-05-01T00:00:00.000Z');
    proxy.fall();
    expect(await rejection(archive.setUpTo('2024-05-02T00:00:00.000Z'))).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('cannot be used'),
    });
    await archive.close();
    // It is not asked to take anything back, which would take as long again.
    expect(proxy.swallowed()).toMatch(/begin/i);
    expect(proxy.swallowed()).not.toMatch(/rollback/i);
  },
);

test.each(HOMES.filter(({ missing }) => missing === null))(
  'a closed archive opens again at the next call ($name)',
  async ({ start }) => {
    const home = await start();
    onTestFinished(() => home.stop());
    const { place } = await home.newPlace();
    const archive = openArchive(place);
    const status = await archive.status();
    await archive.close();
    expect(await archive.status()).toEqual(status);
    await archive.close();
  },
);

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
