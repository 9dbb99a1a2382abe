/** Opens a checkpoint database file, and refuses other files. */
import { closeSync, openSync } from 'node:fs';
import { messageOf, PerdureError } from '../contract/errors.ts';

export interface FileFormat {
  /** For the error "… is not a …". */
  what: string;
  applicationId: number;
  /** Files with another version of the tables are refused. */
  version: number;
  tables: string;
  /** How long a write waits for another process, in milliseconds. */
  busyMs: number;
}

const CHECKPOINTS: FileFormat = {
  what: 'checkpoint database',
  // "prdr"
  applicationId: 0x70726472,
  version: 1,
  busyMs: 10_000,
  tables: `
CREATE TABLE threads (
  thread_id TEXT PRIMARY KEY,
  -- How often the thread was deleted: a write that began under another number is late.
  epoch INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE checkpoints (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  thread_id TEXT NOT NULL,
  id TEXT NOT NULL,
  created_at TEXT NOT NULL,
  state TEXT NOT NULL,
  parent_id TEXT,
  metadata TEXT NOT NULL,
  UNIQUE (thread_id, id)
);
CREATE INDEX checkpoints_in_order ON checkpoints (thread_id, seq);
CREATE TABLE steps (
  thread_id TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (thread_id, key)
) WITHOUT ROWID;
`,
};

/** The part of the driver that we use. */
export interface Database {
  exec(sql: string): unknown;
  pragma(sql: string): unknown;
  prepare(sql: string): {
    run(...params: (string | number | null)[]): { changes: number };
    get(...params: (string | number | null)[]): unknown;
    all(...params: (string | number | null)[]): unknown[];
  };
  close(): unknown;
}

/**
 * Opens a file in WAL mode, with every commit synced, and creates the tables in a new file.
 *
 * @throws PerdureError `INVALID_ARGUMENT` when it cannot be opened or the driver is missing; `CHECKPOINT_CORRUPTION`
 * when it is not a database, belongs to another program, or has another version.
 */
export async function openDatabase(path: string, format: FileFormat = CHECKPOINTS): Promise<Database> {
  const Driver = await driver();
  let db: Database;
  try {
    // Only this user can read a new file. SQLite gives the files beside it the same mode.
    if (path !== ':memory:') closeSync(openSync(path, 'a', 0o600));
    db = new Driver(path, { timeout: format.busyMs });
  } catch (cause) {
    throw new PerdureError('INVALID_ARGUMENT', `path: ${path} cannot be opened: ${messageOf(cause)}`, {
      cause,
    });
  }
  try {
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    inTransaction(db, () => prepareTables(path, db, format));
    return db;
  } catch (cause) {
    db.close();
    if (cause instanceof PerdureError) throw cause;
    const { code } = cause as { code?: unknown };
    if (typeof code === 'string' && /BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|PERM/.test(code)) {
      // The file may be intact; it just cannot be used now.
      throw new PerdureError('INVALID_ARGUMENT', `path: ${path} cannot be opened: ${messageOf(cause)}`, {
        cause,
      });
    }
    throw new PerdureError('CHECKPOINT_CORRUPTION', `${path} is no ${format.what}: ${messageOf(cause)}`, {
      cause,
    });
  }
}

/**
 * Runs work in one write transaction. The driver's own function hides the error when a full disk has ended the
 * transaction.
 */
export function inTransaction<T>(db: Database, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  let result: T;
  try {
    result = work();
    db.exec('COMMIT');
  } catch (error) {
    try {
      db.exec('ROLLBACK');
    } catch {
      // Already rolled back.
    }
    throw error;
  }
  return result;
}

function prepareTables(path: string, db: Database, format: FileFormat): void {
  const version = numberOf(db.pragma('user_version'), 'user_version');
  const application = numberOf(db.pragma('application_id'), 'application_id');
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number };
  if (version === 0 && application === 0 && tables === 0) {
    db.exec(format.tables);
    db.pragma(`user_version = ${format.version}`);
    db.pragma(`application_id = ${format.applicationId}`);
    return;
  }
  if (application !== format.applicationId) {
    throw new PerdureError(
      'CHECKPOINT_CORRUPTION',
      `${path} belongs to another program: choose another file`,
    );
  }
  if (version !== format.version) {
    throw new PerdureError(
      'CHECKPOINT_CORRUPTION',
      `${path} has schema version ${version}, but this version of perdure reads ${format.version}. Open it with the version that wrote it`,
      { details: { found: version, expected: format.version } },
    );
  }
}

async function driver(): Promise<new (path: string, options: { timeout: number }) => Database> {
  try {
    const { default: Driver } = await import('libsql');
    return Driver;
  } catch (cause) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `SQLite files need the package libsql, which could not be loaded: ${messageOf(cause)}. Install it with npm install libsql.`,
      { cause },
    );
  }
}

function numberOf(rows: unknown, name: string): number {
  return (rows as Record<string, number>[])[0]?.[name] ?? -1;
}
