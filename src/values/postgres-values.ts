import type { StoredValue, ValueStore } from '../contract/values.ts';
import { Postgres } from '../postgres/index.ts';

const QUERY_MS = 60_000;
/** How many values are listed at a time. */
const PAGE = 500;

const TABLES = `
CREATE TABLE IF NOT EXISTS stored (
  digest TEXT PRIMARY KEY,
  bytes BYTEA NOT NULL,
  stored_at TIMESTAMPTZ NOT NULL
);
CREATE TABLE IF NOT EXISTS owners (
  digest TEXT NOT NULL REFERENCES stored (digest) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  PRIMARY KEY (digest, owner)
);
CREATE INDEX IF NOT EXISTS owners_owner ON owners (owner);
`;

/**
 * Stores values in a PostgreSQL database, in the schema `perdure_values`, which is created when it does not exist.
 * Needs the optional package `pg`. Calls reject with `SERVER_UNAVAILABLE` when the database cannot be used.
 */
export class PostgresValues implements ValueStore {
  readonly #postgres: Postgres;

  /**
   * @param url - `postgres://user:password@host:5432/database`
   * @throws PerdureError `INVALID_ARGUMENT`
   */
  constructor(url: string) {
    this.#postgres = new Postgres(url, {
      what: 'A PostgreSQL store of values',
      schema: 'perdure_values',
      // "prdv"
      lock: 0x70726476,
      queryMs: QUERY_MS,
      prepare: async (client) => void (await client.query(TABLES)),
    });
  }

  async put(digest: string, bytes: Uint8Array, owner: string): Promise<void> {
    await this.#postgres.transaction(async (client) => {
      // Locks the row, so that a removal comes before or after this.
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
    const [row] = await this.#postgres.query<{ bytes: Uint8Array }>(
      'SELECT bytes FROM stored WHERE digest = $1',
      [digest],
    );
    return row?.bytes ?? null;
  }

  async has(digest: string, owner: string): Promise<boolean> {
    const rows = await this.#postgres.query('SELECT 1 FROM owners WHERE digest = $1 AND owner = $2', [
      digest,
      owner,
    ]);
    return rows.length > 0;
  }

  share(digest: string, owner: string): Promise<boolean> {
    return this.#postgres.transaction(async (client) => {
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
      const rows = await this.#postgres.query<{
        digest: string;
        bytes: string;
        stored: Date;
        owners: string[];
      }>(
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
    return this.#postgres.transaction(async (client) => {
      // Locks the row first, so that the statements below see what others have committed until then.
      const found = await client.query('SELECT 1 FROM stored WHERE digest = $1 FOR UPDATE', [digest]);
      // Without a row there is no lock and no owner. What others store from now on stays.
      if (found.rows.length === 0) return false;
      await client.query('DELETE FROM owners WHERE digest = $1 AND owner = $2', [digest, owner]);
      const { rows } = await client.query(
        `DELETE FROM stored s WHERE digest = $1
        AND NOT EXISTS (SELECT 1 FROM owners o WHERE o.digest = s.digest) RETURNING digest`,
        [digest],
      );
      return rows.length > 0;
    });
  }
}
