import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
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
  'a release that found no value does not remove one that was stored meanwhile',
  async () => {
    const url = await newUrl();
    const store = new PostgresValues(url);
    const digest = 'd'.repeat(64);
    expect(await store.get(digest)).toBeNull();
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    // Holds a release up before it deletes an owner, and again when it is to delete the value.
    await client.query(`
      CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
      CREATE TRIGGER hold BEFORE DELETE ON perdure_values.stored EXECUTE FUNCTION hold();
      SELECT pg_advisory_lock(1);
    `);
    await client.query('BEGIN; LOCK TABLE perdure_values.owners IN SHARE MODE');
    let isReleased = false;
    const release = store.release(digest, 'x').then(() => (isReleased = true));
    const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = $1`;
    const isHeld = async (at: string): Promise<boolean> => (await client.query(waits, [at])).rows.length > 0;
    const untilHeld = async (at: string): Promise<void> => {
      await expect.poll(async () => isReleased || (await isHeld(at))).toBe(true);
    };
    await untilHeld('relation');
    await client.query(`
      INSERT INTO perdure_values.stored VALUES ('${digest}', 'the value', now());
      INSERT INTO perdure_values.owners VALUES ('${digest}', 'x');
      COMMIT;
    `);
    await untilHeld('advisory');
    await store.put(digest, Buffer.from('the value'), 'y');
    await client.query('SELECT pg_advisory_unlock(1)');
    await release;
    expect(await store.has(digest, 'y')).toBe(true);
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
