import type { Pool as PgPool } from 'pg';
import { messageOf, PerdureError } from '../contract/errors.ts';
import type { StoredValue, ValueStore } from '../contract/values.ts';

/** The tables have their own schema, so that they can share a database with a user's tables. */
const SCHEMA = 'perdure_values';
/** "prdv": the advisory lock for creating the tables. */
const LOCK = 0x70726476;
const CONNECT_MS = 5_000;
const QUERY_MS = 60_000;
/** Values that are listed together. */
const PAGE = 500;

const TABLES = `
CREATE SCHEMA IF NOT EXISTS ${SCHEMA};
CREATE TABLE IF NOT EXISTS ${SCHEMA}.stored (
  digest TEXT PRIMARY KEY,
  bytes BYTEA NOT NULL,
  stored_at TIMESTAMPTZ NOT NULL
);
CREATE TABLE IF NOT EXISTS ${SCHEMA}.owners (
  digest TEXT NOT NULL REFERENCES ${SCHEMA}.stored (digest) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  PRIMARY KEY (digest, owner)
);
CREATE INDEX IF NOT EXISTS owners_owner ON ${SCHEMA}.owners (owner);
`;

/** The part of the driver that we use. */
interface Querying {
  query(text: string, values?: (string | null | Uint8Array)[]): Promise<{ rows: unknown[] }>;
}
interface Pool extends Querying {
  connect(): Promise<Querying & { release(destroy?: boolean): void }>;
}

/**
 * Values in a PostgreSQL database, in the schema `perdure_values`, which is created when it does not exist. Needs the
 * optional package `pg`. Calls reject with `SERVER_UNAVAILABLE` when the database cannot be used.
 */
export class PostgresValues implements ValueStore {
  readonly #url: string;
  readonly #place: string;
  #pool: Promise<Pool> | undefined;

  /**
   * @param url - `postgres://user:password@host:5432/database`
   * @throws PerdureError `INVALID_ARGUMENT`
   */
  constructor(url: string) {
    const parsed = URL.canParse(url) ? new URL(url) : null;
    if (parsed === null || !/^postgres(ql)?:$/i.test(parsed.protocol) || parsed.pathname.includes('@'))
      throw new PerdureError('INVALID_ARGUMENT', 'url: write postgres://user:password@host:5432/database');
    this.#url = url;
    this.#place = `postgres://${parsed.host}${parsed.pathname}`;
  }

  async put(digest: string, bytes: Uint8Array, owner: string): Promise<void> {
    await this.#within(async (client) => {
      // Locks the row: whoever removes it comes before or after this.
      const { rows } = await client.query(
        'UPDATE stored SET stored_at = now() WHERE digest = $1 RETURNING digest',
        [digest],
      );
      if (rows.length === 0) {
        await client.query(
          'INSERT INTO stored VALUES ($1, $2, now()) ON CONFLICT (digest) DO UPDATE SET stored_at = now()',
          [digest, bytes],
        );
      }
      await client.query('INSERT INTO owners VALUES ($1, $2) ON CONFLICT DO NOTHING', [digest, owner]);
    });
  }

  async get(digest: string): Promise<Uint8Array | null> {
    const [row] = await this.#all<{ bytes: Uint8Array }>('SELECT bytes FROM stored WHERE digest = $1', [
      digest,
    ]);
    return row?.bytes ?? null;
  }

  async has(digest: string, owner: string): Promise<boolean> {
    const rows = await this.#all('SELECT 1 FROM owners WHERE digest = $1 AND owner = $2', [digest, owner]);
    return rows.length > 0;
  }

  share(digest: string, owner: string): Promise<boolean> {
    return this.#within(async (client) => {
      const { rows } = await client.query(
        'UPDATE stored SET stored_at = now() WHERE digest = $1 RETURNING digest',
        [digest],
      );
      if (rows.length === 0) return false;
      await client.query('INSERT INTO owners VALUES ($1, $2) ON CONFLICT DO NOTHING', [digest, owner]);
      return true;
    });
  }

  async *list(owner?: string): AsyncGenerator<StoredValue> {
    for (let after = ''; ; ) {
      const rows = await this.#all<{ digest: string; bytes: string; stored: Date; owners: string[] }>(
        `SELECT digest, length(bytes) AS bytes, stored_at AS stored,
          ARRAY(SELECT owner FROM owners o WHERE o.digest = s.digest) AS owners
        FROM stored s
        WHERE digest > $1 AND ($2::text IS NULL OR digest IN (SELECT digest FROM owners WHERE owner = $2))
        ORDER BY digest LIMIT ${PAGE}`,
        [after, owner ?? null],
      );
      for (const { digest, bytes, stored, owners } of rows)
        yield { digest, bytes: Number(bytes), storedAt: stored.getTime(), owners };
      if (rows.length < PAGE) return;
      after = rows.at(-1)?.digest ?? '';
    }
  }

  release(digest: string, owner: string | null): Promise<boolean> {
    return this.#within(async (client) => {
      // Each later statement sees what was stored before the lock was had.
      await client.query('SELECT 1 FROM stored WHERE digest = $1 FOR UPDATE', [digest]);
      await client.query('DELETE FROM owners WHERE digest = $1 AND owner = $2', [digest, owner]);
      const { rows } = await client.query(
        `DELETE FROM stored s WHERE digest = $1
        AND NOT EXISTS (SELECT 1 FROM owners o WHERE o.digest = s.digest) RETURNING digest`,
        [digest],
      );
      return rows.length > 0;
    });
  }

  #all<T>(sql: string, values: (string | null)[]): Promise<T[]> {
    return this.#known(async () => (await (await this.#open()).query(sql, values)).rows as T[]);
  }

  #within<T>(work: (client: Querying) => Promise<T>): Promise<T> {
    return this.#known(async () => {
      const client = await (await this.#open()).connect();
      // Close a failed connection together with its transaction: it may never answer.
      let failed = true;
      try {
        await client.query('BEGIN');
        const result = await work(client);
        await client.query('COMMIT');
        failed = false;
        return result;
      } finally {
        client.release(failed);
      }
    });
  }

  /** The pool, with the tables there. A failure is tried again by the next call. */
  #open(): Promise<Pool> {
    this.#pool ??= this.#prepared().catch((error: unknown) => {
      this.#pool = undefined;
      throw error;
    });
    return this.#pool;
  }

  async #prepared(): Promise<Pool> {
    const pool = await newPool(this.#url);
    const client = await pool.connect();
    let failed = true;
    try {
      await client.query('BEGIN');
      await client.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
      await client.query(TABLES);
      await client.query('COMMIT');
      failed = false;
    } finally {
      client.release(failed);
    }
    return pool;
  }

  /** Errors without secrets. */
  async #known<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (cause instanceof PerdureError) throw cause;
      const { code, message = '' } = cause as { code?: string; message?: string };
      const why = message === '' ? (code ?? 'no answer') : message;
      throw new PerdureError('SERVER_UNAVAILABLE', `${this.#place} cannot be used: ${why}`, { cause });
    }
  }
}

async function newPool(url: string): Promise<Pool> {
  let Driver: typeof PgPool;
  try {
    ({ Pool: Driver } = (await import('pg')).default);
  } catch (cause) {
    const why = messageOf(cause);
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `A PostgreSQL store of values needs the package pg, which could not be loaded: ${why}. Install it with npm install pg.`,
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
  // The pool replaces a lost connection. Without a listener, the event would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return pool;
}
