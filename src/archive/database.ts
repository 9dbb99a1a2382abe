/** What an archive needs of a database: the same statements run on all of them. */

/** Statements, with `?` for each value. */
export interface ArchiveStatements {
  /** Rows of a SELECT; of anything else none. */
  all<T = Record<string, string | number | null>>(
    sql: string,
    ...values: (string | number | null)[]
  ): Promise<T[]>;
}

/** A database that is open. */
export interface ArchiveDatabase extends ArchiveStatements {
  /** Runs work as the only writer: all of it is stored, or nothing. */
  transaction<T>(work: (statements: ArchiveStatements) => Promise<T>): Promise<T>;
  /** Ends what is open. */
  close(): Promise<void>;
}

/** The version of the tables. */
export const ARCHIVE_VERSION = 1;
/** How long a write waits for another process's, in milliseconds. Short: the exporter tries again anyway. */
export const ARCHIVE_BUSY_MS = 2_000;

/**
 * The tables of an archive, in a dialect. Of each run the records are in the order of its history, and its cursor is
 * the last of them: both move in one transaction. Every 32nd record holds its whole state, the others what changed
 * since the one before.
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

/** Every so many records of a run one holds its whole state. */
export const WHOLE_EVERY = 32;
