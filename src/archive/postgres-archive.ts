import { PerdureError } from '../contract/errors.ts';
import { Postgres, type Querying } from '../postgres/index.ts';
import { CheckpointArchive } from './checkpoint-archive.ts';
import {
  ARCHIVE_BUSY_MS,
  ARCHIVE_VERSION,
  type ArchiveDatabase,
  type ArchiveStatements,
  archiveTables,
} from './database.ts';
import type { ArchiveOptions } from './row-codec.ts';

const SCHEMA = 'perdure_archive';
const QUERY_MS = 30_000;

/**
 * An archive of sessions' checkpoints in a PostgreSQL database, in the schema `perdure_archive`, which is created when
 * it does not exist. Needs the optional package `pg`.
 *
 * Calls reject with `SERVER_UNAVAILABLE` when the server is unavailable, and with `CHECKPOINT_CORRUPTION` when the
 * tables have an unknown version.
 */
export class PostgresArchive extends CheckpointArchive {
  readonly #postgres: Postgres;

  /**
   * @param url - `postgres://user:password@host:5432/database`. Its query holds options of `pg`: `?query_timeout=60000`
   * waits longer than the default of 30 seconds.
   * @throws PerdureError `INVALID_ARGUMENT`
   */
  constructor(url: string, options: ArchiveOptions = {}) {
    super(options);
    this.#postgres = new Postgres(url, {
      what: 'A PostgreSQL archive',
      schema: SCHEMA,
      // "prda"
      lock: 0x70726461,
      queryMs: QUERY_MS,
      lockMs: ARCHIVE_BUSY_MS,
      prepare: (client) => prepare(client, this.place),
    });
  }

  override get place(): string {
    return this.#postgres.place;
  }

  protected override async connect(): Promise<ArchiveDatabase> {
    const postgres = this.#postgres;
    await postgres.open();
    return {
      all: (sql, ...values) => postgres.query(numbered(sql), values),
      transaction: (work) =>
        postgres.transaction(async (client) => {
          await client.query('LOCK TABLE facts IN SHARE ROW EXCLUSIVE MODE');
          return work(statementsOf(client));
        }),
      close: () => postgres.close(),
    };
  }
}

/** Creates the tables, or refuses tables of another version. */
async function prepare(client: Querying, place: string): Promise<void> {
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
    `${place} has schema version ${found}, but this version of perdure reads ${ARCHIVE_VERSION}. Open it with the version that wrote it`,
    { details: { found, expected: ARCHIVE_VERSION } },
  );
}

function statementsOf(client: Querying): ArchiveStatements {
  return {
    all: async <Row>(sql: string, ...values: (string | number | null)[]) =>
      (await client.query(numbered(sql), values)).rows as Row[],
  };
}

/** Numbers the placeholders. Our statements use `?` for nothing else. */
function numbered(sql: string): string {
  let count = 0;
  return sql.replaceAll('?', () => `$${++count}`);
}
