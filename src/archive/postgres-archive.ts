import type { Pool as PgPool } from 'pg';
import { PerdureError } from '../contract/errors.ts';
import { CheckpointArchive } from './checkpoint-archive.ts';
import {
  ARCHIVE_BUSY_MS,
  ARCHIVE_VERSION,
  type ArchiveDatabase,
  type ArchiveStatements,
  archiveTables,
} from './database.ts';

/** The tables' own schema, so that they may lie beside a user's. */
const SCHEMA = 'perdure_archive';
/** "prda": who makes the tables is alone. */
const LOCK = 0x70726461;
/** How long a server may take to be connected to, and to answer a query, in milliseconds: it may be there and silent. */
const CONNECT_MS = 5_000;
const QUERY_MS = 30_000;
/**
 * SQLSTATE classes and codes of a server that cannot be used now: no connection, refused, no resources, shut down;
 * and a system error that is as long as one.
 */
const UNAVAILABLE = /^(08|28|3D|53|57P|EPIPE)/;

/**
 * An archive of sessions' checkpoints in a PostgreSQL database, in tables of the schema `perdure_archive`, which are
 * made when they are not there. Needs the optional package `pg`.
 *
 * Calls reject with `SERVER_UNAVAILABLE` when the server cannot be used now, and with `CHECKPOINT_CORRUPTION` when
 * the tables are of an unknown version.
 */
export class PostgresArchive extends CheckpointArchive {
  readonly #url: string;
  override readonly place: string;

  /**
   * @param url - `postgres://user:password@host:5432/database`, with what `pg` takes as its query: `?query_timeout=60000`
   * has it wait longer than 30 seconds for an answer.
   * @throws PerdureError `INVALID_ARGUMENT`
   */
  constructor(url: string) {
    super();
    const parsed = URL.canParse(url) ? new URL(url) : null;
    // An @ in the path is a password's: what is before it would be shown as the place.
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

/** Whether a text is the URL of a PostgreSQL database. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//i.test(text);
}

/** The part of the driver's interface that is used here. */
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

  /** Makes the tables, or refuses those of another version. */
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
        `${this.#place} has schema version ${found}, and this version of perdure reads ${ARCHIVE_VERSION}: open it with the version that wrote it`,
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
      // One that has failed is let go with what it had begun: it may not answer any more.
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

  /** Gives a server that cannot be used now its code. Nothing secret is said. */
  async #known<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (cause instanceof PerdureError) throw cause;
      const { code, message = '' } = cause as { code?: string; message?: string };
      // Without an SQLSTATE it is the connection that has failed.
      if (code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !UNAVAILABLE.test(code)) throw cause;
      const why = message === '' ? (code ?? 'no answer') : message;
      throw new PerdureError('SERVER_UNAVAILABLE', `${this.#place} cannot be used: ${why}`, { cause });
    }
  }
}

/** ArchiveStatements are written with `?`; none holds one otherwise. */
function numbered(sql: string): string {
  let count = 0;
  return sql.replaceAll('?', () => `$${++count}`);
}

async function newPool(url: string): Promise<Pool> {
  let Driver: typeof PgPool;
  try {
    ({ Pool: Driver } = (await import('pg')).default);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
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
    // A process that has nothing else to do may end.
    allowExitOnIdle: true,
  });
  // A connection that is lost at rest is made anew. One that is lost at work fails what it was asked, and says it once
  // more by itself: unheard, that would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return pool;
}
