import type { Pool as PgPool } from 'pg';
import { messageOf, PerdureError } from '../contract/errors.ts';
import { placeOf } from './url.ts';

/** The time-out for connecting, in milliseconds. A server may accept connections and never answer. */
const CONNECT_MS = 5_000;
/**
 * SQLSTATE classes and codes of a server that is unavailable: no connection, refused, no resources, shut down. `EPIPE`
 * is a system error code of the same length.
 */
const UNAVAILABLE = /^(08|28|3D|53|57P|EPIPE)/;

/** The part of the driver that we use. */
export interface Querying {
  query(text: string, values?: (string | number | null | Uint8Array)[]): Promise<{ rows: unknown[] }>;
}
interface Pool extends Querying {
  connect(): Promise<Querying & { release(destroy?: boolean): void }>;
  end(): Promise<void>;
}

interface PostgresOptions {
  /** What needs the package `pg`, for the error without it. */
  what: string;
  /** The schema of the tables, so that they can share a database with a user's tables. */
  schema: string;
  /** The advisory lock under which the tables are created. */
  lock: number;
  /** The time-out of a query, in milliseconds. */
  queryMs: number;
  /** How long a transaction waits for a lock, in milliseconds. Default: as long as a query may take. */
  lockMs?: number;
  /** Creates the tables when they do not exist. Runs in the transaction that has the lock. */
  prepare: (client: Querying) => Promise<void>;
}

/**
 * The connections to a schema of a PostgreSQL database, which is created when it does not exist. They open on first use,
 * and again after a failure or {@link Postgres.close}. Calls reject with `SERVER_UNAVAILABLE` when the server is
 * unavailable.
 */
export class Postgres {
  /** The location, for messages. Holds no secrets. */
  readonly place: string;
  readonly #url: string;
  readonly #options: PostgresOptions;
  #pool: Promise<Pool> | undefined;

  /** @throws PerdureError `INVALID_ARGUMENT` when `url` is not a URL of PostgreSQL */
  constructor(url: string, options: PostgresOptions) {
    this.place = placeOf(url);
    this.#url = url;
    this.#options = options;
  }

  /** Connects and creates the tables, unless that has been done. */
  async open(): Promise<void> {
    await this.#known(() => this.#open());
  }

  /** The rows of one statement. */
  query<T>(...statement: Parameters<Querying['query']>): Promise<T[]> {
    return this.#known(async () => (await (await this.#open()).query(...statement)).rows as T[]);
  }

  /** Runs `work` in a transaction. */
  transaction<T>(work: (client: Querying) => Promise<T>): Promise<T> {
    return this.#known(async () => this.#within(await this.#open(), work));
  }

  /** Closes the connections. The next call opens new ones. */
  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = undefined;
    await (await pool?.catch(() => undefined))?.end();
  }

  async #open(): Promise<Pool> {
    this.#pool ??= this.#prepared();
    const pool = this.#pool;
    try {
      return await pool;
    } catch (error) {
      if (this.#pool === pool) this.#pool = undefined;
      throw error;
    }
  }

  async #prepared(): Promise<Pool> {
    const { schema, lock, prepare } = this.#options;
    const pool = await newPool(this.#url, this.#options);
    try {
      await this.#within(pool, async (client) => {
        await client.query('SELECT pg_advisory_xact_lock($1)', [lock]);
        await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
        await prepare(client);
      });
      return pool;
    } catch (error) {
      await pool.end();
      throw error;
    }
  }

  async #within<T>(pool: Pool, work: (client: Querying) => Promise<T>): Promise<T> {
    const { schema, lockMs = 0 } = this.#options;
    const client = await pool.connect();
    // Close a failed connection together with its transaction: it may never answer.
    let failed = true;
    try {
      await client.query(`BEGIN; SET LOCAL search_path TO ${schema}; SET LOCAL lock_timeout TO ${lockMs}`);
      const result = await work(client);
      await client.query('COMMIT');
      failed = false;
      return result;
    } finally {
      client.release(failed);
    }
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
      throw new PerdureError('SERVER_UNAVAILABLE', `${this.place} cannot be used: ${why}`, { cause });
    }
  }
}

async function newPool(url: string, { what, schema, queryMs }: PostgresOptions): Promise<Pool> {
  let Driver: typeof PgPool;
  try {
    ({ Pool: Driver } = (await import('pg')).default);
  } catch (cause) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `${what} needs the package pg, which could not be loaded: ${messageOf(cause)}. Install it with npm install pg.`,
      { cause },
    );
  }
  const pool = new Driver({
    connectionString: url,
    max: 4,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: queryMs,
    keepAlive: true,
    options: `-c search_path=${schema}`,
    // An idle connection must not keep the process alive.
    allowExitOnIdle: true,
  });
  // The pool replaces a connection that is lost while idle. A connection that is lost in use fails its query and also
  // emits this event. Without a listener, the event would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  return pool;
}
