/** Where archives lie, and how a test gets at one from behind. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import pg from 'pg';
import { findPrograms, type Postgres, startPostgres } from '../../bench/peers/postgres.ts';

/** A new archive's place, and another connection to it. */
export interface Place {
  /** What `openArchive` takes. */
  place: string;
  /** Keeps others from writing, until the function is called that it returns. */
  lock(): Promise<() => Promise<void>>;
  setVersion(version: number): Promise<void>;
  /** Changes a record, past the archive. */
  damage(eventId: number): Promise<void>;
  close(): Promise<void>;
}

/** A kind of database, started for a file of tests. */
export interface Home {
  newPlace(): Promise<Place>;
  stop(): Promise<void>;
}

const DAMAGE = "UPDATE checkpoints SET created_at = '1999-01-01T00:00:00.000Z' WHERE event_id = ";
const LOCKED_MESSAGE = { sqlite: 'database is locked', postgres: 'lock timeout' } as const;

/** A home that can be away for a while. */
export interface PostgresHome extends Home {
  /** Ends the server at once. */
  down(): Promise<void>;
  /** Starts it again, with what it holds. */
  up(): Promise<void>;
  /** The first cell of a query's result, in a place of this home. */
  ask(place: string, sql: string): Promise<string>;
}

const MISSING_POSTGRES: string | null =
  findPrograms() === undefined ? 'there is no PostgreSQL: initdb is not on PATH' : null;

/** The homes that this machine has. */
export const HOMES: {
  name: 'sqlite' | 'postgres';
  locked: string;
  missing: string | null;
  start: () => Promise<Home>;
}[] = [
  { name: 'sqlite', locked: LOCKED_MESSAGE.sqlite, missing: null, start: startSqlite },
  {
    name: 'postgres',
    locked: LOCKED_MESSAGE.postgres,
    missing: MISSING_POSTGRES,
    start: startPostgresHome,
  },
];

/** Files in a directory. */
export async function startSqlite(): Promise<Home> {
  const directory = await mkdtemp(join(tmpdir(), 'perdure-archive-'));
  let count = 0;
  return {
    newPlace: async () => {
      const place = join(directory, `archive-${count++}.sqlite`);
      const within = <T>(work: (db: Database.Database) => T): T => {
        const db = new Database(place);
        try {
          return work(db);
        } finally {
          db.close();
        }
      };
      return {
        place,
        lock: async () => {
          const db = new Database(place);
          db.exec('BEGIN IMMEDIATE');
          return async () => {
            db.exec('COMMIT');
            db.close();
          };
        },
        setVersion: async (version) => within((db) => void db.pragma(`user_version = ${version}`)),
        damage: async (eventId) => within((db) => void db.exec(`${DAMAGE}${eventId}`)),
        close: async () => undefined,
      };
    },
    stop: () => rm(directory, { recursive: true }),
  };
}

/** Databases of a server of its own. */
export async function startPostgresHome(): Promise<PostgresHome> {
  const directory = await mkdtemp(join(tmpdir(), 'perdure-postgres-'));
  const server: Postgres = await startPostgres(directory);
  let count = 0;
  let isUp = true;
  const down = async (): Promise<void> => {
    if (isUp) await server.stop();
    isUp = false;
  };
  const connect = async (place: string): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: place, options: '-c search_path=perdure_archive' });
    // The server may be ended meanwhile: then nothing is locked any more.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const within = async <T>(place: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = await connect(place);
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  };
  return {
    newPlace: async () => {
      const name = `archive_${count++}`;
      await server.ask('postgres', `CREATE DATABASE ${name}`);
      const place = server.url(name);
      return {
        place,
        lock: async () => {
          const client = await connect(place);
          await client.query('BEGIN');
          await client.query('LOCK TABLE facts IN SHARE ROW EXCLUSIVE MODE');
          return async () => {
            await client.query('COMMIT');
            await client.end();
          };
        },
        setVersion: (version) =>
          within(
            place,
            async (client) =>
              void (await client.query("UPDATE facts SET value = $1 WHERE key = 'version'", [
                String(version),
              ])),
          ),
        damage: (eventId) =>
          within(place, async (client) => void (await client.query(`${DAMAGE}${eventId}`))),
        close: async () => undefined,
      };
    },
    down,
    up: async () => {
      await server.restart();
      isUp = true;
    },
    ask: (place, sql) => server.ask(new URL(place).pathname.slice(1), sql),
    stop: async () => {
      await down();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
