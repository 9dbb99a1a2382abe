/** The tables of an archive. */
import type { FileFormat } from '../saver/sqlite-file.ts';

/**
 * Of each run the records are in the order of its history, and its cursor is the last of them: both move in one
 * transaction. Every 32nd record holds its whole state, the others what changed since the one before.
 */
export const ARCHIVE_FILE: FileFormat = {
  what: 'archive',
  // "prda"
  applicationId: 0x70726461,
  version: 1,
  // Short: what waits here holds up the process, and the exporter tries again anyway.
  busyMs: 2_000,
  tables: `
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE threads (
  thread_id TEXT PRIMARY KEY,
  -- How often the thread was deleted: an export that began under another number is late.
  epoch INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  thread_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  started_at INTEGER NOT NULL,
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
`,
};

/** Every so many records of a run one holds its whole state. */
export const WHOLE_EVERY = 32;
