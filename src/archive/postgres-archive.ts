import type { Pool as PgPool } from 'pg';
import { messageOf, PerdureError } from '../contract/errors.ts';
import { CheckpointArchive } from './checkpoint-archive.ts';
import {
  ARCHIVE_BUSY_MS,
  ARCHIVE_VERSION,
  type ArchiveDatabase,
  type ArchiveStatements,
  archiveTables,
} from './database.ts';
import type { ArchiveOptions } from './row-codec.ts';

/** The tables have their own schema, so that they can share a database with a user's tables. */
const SCHEMA = 'perdure_archive';
/** "prda": the advisory lock for creating the tables. */
const LOCK = 0x70726461;
/** The time-out for connecting and for a query, in milliseconds. A server may accept connections and never answer. */
const CONNECT_MS = 5_000;
const QUERY_MS = 30_000;
/**
 * SQLSTATE classes and codes of a server that is unavailable: no connection, refused, no resources, shut down. Also a
 * system error code of the same length.
 */
const UNAVAILABLE = /^(08|28|3D|53|57P|EPIPE)/;

/**
 * An archive of sessions' checkpoints in a PostgreSQL database, in the schema `perdure_archive`, which is created when it
 * does not exist. Needs the optional package `pg`.
 *
 * Calls reject with `SERVER_UNAVAILABLE` when the server is unavailable, and with `CHECKPOINT_CORRUPTION` when the tables
 * have an unknown version.
 */
export class PostgresArchive extends CheckpointArchive {
  readonly #url: string;
  override readonly place: string;

  /**
   * @param url - `postgres://user:password@host:5432/database`. Its query holds options of `pg`: `?query_timeout=60000`
   * waits longer than the default of 30 seconds.
   * @throws PerdureError `INVALID_ARGUMENT`
   */
  constructor(url: string, options: ArchiveOptions = {}) {
    super(options);
    const parsed = URL.canParse(url) ? new URL(url) : null;
    // An @ in the path belongs to a password that was not escaped, and would be shown.
    if (parsed === null || !isPostgresUrl(url) || parsed.pathname.includes('@')) {
      throw new PerdureError('INVALID_ARGUMENT', 'url: write postgres://user:password@host:5432/database');
    }
    this.#url = url;
    this.place = `postgres://${parsed.host}${parsed.pathname}`;
  }

  protected override async connect(): Promise<ArchiveDatabase> {
    const db = new PostgresStatements(await newPool(this.#url), this.place);
    try {
      await db.prepare();
      return db;
    } catch (error) {
      await db.close();
      throw error;
    }
  }
}

/** Whether this is the URL of a PostgreSQL database. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//i.test(text);
}

/** The part of the driver that we use. */
interface Querying {
  query(text: string, values?: (string | number | null)[]): Promise<{ rows: unknown[] }>;
}
interface Pool extends Querying {
  connect(): Promise<Querying & { release(destroy?: boolean): void }>;
  end(): Promise<void>;
}

class PostgresStatements implements ArchiveDatabase {
  readonly #pool: Pool;
  readonly #place: string;

  constructor(pool: Pool, place: string) {
    this.#pool = pool;
    this.#place = place;
  }

  /** Creates the tables, or refuses tables of another version. */
  async prepare(): Promise<void> {
    await this.#within(async (client) => {
      await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
      await client.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`);
      const { rows } = await client.query('SELECT to_regclass($1) AS name', [`${SCHEMA}.facts`]);
      if ((rows[0] as { name: unknown }).name === null) {
        const dialect = { sequence: 'INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY', keyed: '' };
        await client.query(archiveTables(dialect));
        await client.query("INSERT INTO facts VALUES ('version', $1)", [String(ARCHIVE_VERSION)]);
      }
      const facts = await client.query("SELECT value FROM facts WHERE key = 'version'");
      const found = Number((facts.rows[0] as { value?: string } | undefined)?.value);
      if (found === ARCHIVE_VERSION) return;
      throw new PerdureError(
        'CHECKPOINT_CORRUPTION',
        `${this.#place} has schema version ${found}, but this version of perdure reads ${ARCHIVE_VERSION}. Open it with the version that wrote it`,
        { details: { found, expected: ARCHIVE_VERSION } },
      );
    });
  }

  all<T>(sql: string, ...values: (string | number | null)[]): Promise<T[]> {
    return this.#known(async () => (await this.#pool.query(numbered(sql), values)).rows as T[]);
  }

  transaction<T>(work: (statements: ArchiveStatements) => Promise<T>): Promise<T> {
    return this.#within(async (client) => {
      await client.query('LOCK TABLE facts IN SHARE ROW EXCLUSIVE MODE');
      return work({
        all: async <Row>(sql: string, ...values: (string | number | null)[]) =>
          (await client.query(numbered(sql), values)).rows as Row[],
      });
    });
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  #within<T>(work: (client: Querying) => Promise<T>): Promise<T> {
    return this.#known(async () => {
      const client = await this.#pool.connect();
      // Close a failed connection together with its transaction: it may never answer.
      let failed = true;
      try {
        await client.query('BEGIN');
        await client.query(`SET LOCAL search_path TO ${SCHEMA}`);
        await client.query(`SET LOCAL lock_timeout TO ${ARCHIVE_BUSY_MS}`);
        const result = await work(client);
        await client.query('COMMIT');
        failed = false;
        return result;
      } finally {
        client.release(failed);
      }
    });
  }

  /** Turns the errors of an unavailable server into `SERVER_UNAVAILABLE`, without secrets. */
  async #known<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (cause instanceof PerdureError) throw cause;
      const { code, message = '' } = cause as { code?: string; message?: string };
      // Without an SQLSTATE, the connection has failed.
      if (code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !UNAVAILABLE.test(code)) throw cause;
      const why = message === '' ? (code ?? 'no answer') : message;
      throw new PerdureError('SERVER_UNAVAILABLE', `${this.#place} cannot be used: ${why}`, { cause });
    }
  }
}

/** Numbers the placeholders. Our statements use `?` for nothing else. */
function numbered(sql: string): string {
  let count = 0;
  return sql.replaceAll('?', () => `$${++count}`);
}

async function newPool(url: string): Promise<Pool> {
  let Driver: typeof PgPool;
  try {
    ({ Pool: Driver } = (await import('pg')).default);
  } catch (cause) {
    const why = messageOf(cause);
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `A PostgreSQL archive needs the package pg, which could not be loaded: ${why}. Install it with npm install pg.`,
      { cause },
    );
  }
  const pool = new Driver({
    connectionString: url,
    max: 4,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
    options: `-c search_path=${SCHEMA}`,
    // An idle connection must not keep the process alive.
    allowExitOnIdle: true,
  });
  // The pool replaces a connection that is lost while idle. One that is lost in use fails its query and also emits this
  // event, which would end the process without a listener.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return pool;
}
