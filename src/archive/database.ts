/** The database interface of archives. The same statements run on every database. */

/** Runs statements, with `?` for each value. */
export interface ArchiveStatements {
  /** The rows of a SELECT. Other statements return none. */
  all<T = Record<string, string | number | null>>(
    sql: string,
    ...values: (string | number | null)[]
  ): Promise<T[]>;
}

/** An open database. */
export interface ArchiveDatabase extends ArchiveStatements {
  /** Runs `work` in a transaction, as the only writer. */
  transaction<T>(work: (statements: ArchiveStatements) => Promise<T>): Promise<T>;
  /** Closes the database. */
  close(): Promise<void>;
}

/** The version of the tables. */
export const ARCHIVE_VERSION = 1;
/** How long a write waits for another process, in milliseconds. Short, because the exporter retries anyway. */
export const ARCHIVE_BUSY_MS = 2_000;

/**
 * The tables of an archive, in a dialect. The records of a run are in the order of its history, and its cursor is the
 * last record: both change in one transaction. Every 32nd record holds the whole state, the others the changes since
 * the record before.
 */
export function archiveTables(dialect: { sequence: string; keyed: string }): string {
  return `
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL)${dialect.keyed};
CREATE TABLE threads (
  thread_id TEXT PRIMARY KEY,
  -- How often the thread was deleted: an export that began under another number is late.
  epoch INTEGER NOT NULL
)${dialect.keyed};
CREATE TABLE runs (
  seq ${dialect.sequence},
  thread_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  -- The event of the last record.
  cursor INTEGER NOT NULL,
  -- Events that the history had at least.
  events INTEGER NOT NULL,
  -- The run has ended, and all of it is here.
  complete INTEGER NOT NULL,
  UNIQUE (thread_id, run_id)
);
CREATE TABLE checkpoints (
  run_seq INTEGER NOT NULL REFERENCES runs (seq),
  event_id INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  parent_id TEXT,
  metadata TEXT NOT NULL,
  -- 1: state is the whole state; 0: the changes since the record before.
  whole INTEGER NOT NULL,
  state TEXT NOT NULL,
  -- SHA-256 of the record's canonical JSON.
  digest TEXT NOT NULL,
  PRIMARY KEY (run_seq, event_id)
);
`;
}

/** One of this many records holds the whole state. */
export const WHOLE_EVERY = 32;
