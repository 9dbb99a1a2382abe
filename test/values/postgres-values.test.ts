import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findPrograms, type Postgres, startPostgres } from '../../bench/peers/postgres.ts';
import { PostgresValues } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { expectOwnership, expectStanding, expectYouth } from './support/store-behaviour.ts';

const isMissing = findPrograms() === undefined;
let server: Postgres;
let folder: string;
let count = 0;
beforeAll(async () => {
  if (isMissing) return;
  folder = await mkdtemp(join(tmpdir(), 'perdure-postgres-'));
  server = await startPostgres(folder);
});
afterAll(async () => {
  if (isMissing) return;
  await server.stop();
  await rm(folder, { recursive: true });
});

async function newUrl(): Promise<string> {
  const name = `values_${count++}`;
  await server.ask('postgres', `CREATE DATABASE ${name}`);
  return server.url(name);
}

test.skipIf(isMissing)('a value is there until its last owner leaves', async () => {
  await expect(expectOwnership(new PostgresValues(await newUrl()))).resolves.toBeUndefined();
});

test.skipIf(isMissing)('a value that was stored again is as young as a new one', async () => {
  await expect(expectYouth(new PostgresValues(await newUrl()))).resolves.toBeUndefined();
});

test.skipIf(isMissing)(
  'three that store and remove one value at once: who has stored it, has it',
  async () => {
    const url = await newUrl();
    const all = ['p', 'q', 'r'].map((owner) => expectStanding(new PostgresValues(url), owner, 50));
    await expect(Promise.all(all)).resolves.toHaveLength(3);
  },
);

test.skipIf(isMissing)(
  'a server that is down is said so, without the password, and found again',
  async () => {
    const name = `values_${count++}`;
    const url = new URL(server.url(name));
    url.password = 'hidden';
    const store = new PostgresValues(url.href);
    const error = await rejection(store.get('a'.repeat(64)));
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE' });
    expect(String(error)).not.toContain('hidden');
    await server.ask('postgres', `CREATE DATABASE ${name}`);
    expect(await store.get('a'.repeat(64))).toBeNull();
  },
);

test('another URL is refused', () => {
  expect(() => new PostgresValues('mysql://x/y')).toThrow(
    'write postgres://user:password@host:5432/database',
  );
});
