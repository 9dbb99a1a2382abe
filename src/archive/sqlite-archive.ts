import { PerdureError } from '../contract/errors.ts';
import { type Database, openDatabase } from '../saver/sqlite-file.ts';
import { CheckpointArchive } from './checkpoint-archive.ts';
import {
  ARCHIVE_BUSY_MS,
  ARCHIVE_VERSION,
  type ArchiveDatabase,
  type ArchiveStatements,
  archiveTables,
} from './database.ts';
import type { ArchiveOptions } from './row-codec.ts';

/**
 * An archive of sessions' checkpoints in an SQLite file (WAL, every transaction synced). Needs the optional package
 * `libsql`.
 *
 * The first call rejects with `CHECKPOINT_CORRUPTION` when the file is not an archive or has an unknown version, and
 * with `INVALID_ARGUMENT` when it cannot be opened.
 */
export class SqliteArchive extends CheckpointArchive {
  readonly path: string;

  /**
   * @param path - the file. It is created when it does not exist.
   * @throws PerdureError `INVALID_ARGUMENT` for a path that looks like a URL
   */
  constructor(path: string, options: ArchiveOptions = {}) {
    super(options);
    // A URL may hold a password, and a file's path is shown and stored in histories.
    if (/:\/\/|^\s*postgres(ql)?:/i.test(path)) {
      throw new PerdureError(
        'INVALID_ARGUMENT',
        'path: it looks like a URL. Write the path of a file, or postgres://user:password@host:5432/database',
      );
    }
    this.path = path;
  }

  override get place(): string {
    return this.path;
  }

  protected override async connect(): Promise<ArchiveDatabase> {
    const db = await openDatabase(this.path, {
      what: 'archive',
      // "prda"
      applicationId: 0x70726461,
      version: ARCHIVE_VERSION,
      busyMs: ARCHIVE_BUSY_MS,
      tables: archiveTables({ sequence: 'INTEGER PRIMARY KEY AUTOINCREMENT', keyed: ' WITHOUT ROWID' }),
    });
    return new SqliteStatements(db);
  }
}

/** One connection. A writer has it alone, because any other statement would be part of its transaction. */
class SqliteStatements implements ArchiveDatabase {
  readonly #db: Database;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(db: Database) {
    this.#db = db;
  }

  async all<T>(sql: string, ...values: (string | number | null)[]): Promise<T[]> {
    await this.#writing.catch(() => undefined);
    return this.#run(sql, values);
  }

  async transaction<T>(work: (statements: ArchiveStatements) => Promise<T>): Promise<T> {
    const before = this.#writing;
    const mine = (async () => {
      await before.catch(() => undefined);
      this.#db.exec('BEGIN IMMEDIATE');
      try {
        const result = await work({ all: async (sql, ...values) => this.#run(sql, values) });
        this.#db.exec('COMMIT');
        return result;
      } catch (error) {
        try {
          this.#db.exec('ROLLBACK');
        } catch {
          // A full disk has already rolled the transaction back.
        }
        throw error;
      }
    })();
    this.#writing = mine;
    return mine;
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => undefined);
    this.#db.close();
  }

  #run<T>(sql: string, values: (string | number | null)[]): T[] {
    const statement = this.#db.prepare(sql);
    if (sql.startsWith('SELECT')) return statement.all(...values) as T[];
    statement.run(...values);
    return [];
  }
}
