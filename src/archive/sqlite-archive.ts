import { randomUUID } from 'node:crypto';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import { digestJson, type JsonObject } from '../contract/json.ts';
import type { Change } from '../saver/diff.ts';
import { type Database, inTransaction, openDatabase } from '../saver/sqlite-file.ts';
import { ARCHIVE_FILE, WHOLE_EVERY } from './archive-file.ts';
import { applyChanges } from './deltas.ts';
import { placeOf } from './place.ts';
import { type ArchivedRun, epochOf, findRun, type Row } from './rows.ts';
import { type ArchivePiece, writePiece } from './write-piece.ts';

/** How far an archive has come, as its file says it. */
export interface ArchiveFileStatus {
  archiveId: string;
  /** The namespace that it belongs to; `null` while nothing was exported. */
  namespace: string | null;
  sessions: number;
  checkpoints: number;
  /** ISO 8601: what was in the histories at this time is in the archive. */
  upTo: string | null;
}

/** A place in the order of a thread: the start of its run, and its event. */
export interface ArchivePosition {
  startedAt: number;
  eventId: number;
}

/**
 * An archive of sessions' checkpoints in an SQLite file (WAL, every transaction synced). Readers and the exporter
 * may use it at the same time. Needs the optional package `libsql`.
 *
 * The file is opened at the first call, which rejects with `CHECKPOINT_CORRUPTION` when it is no archive, another
 * program's or of an unknown version, and with `INVALID_ARGUMENT` when it cannot be opened. A record that is not
 * as it was stored is `CHECKPOINT_CORRUPTION`.
 */
export class SqliteArchive {
  readonly path: string;
  #opening: Promise<Database> | null = null;

  /** @param path - the file, made when it is not there. */
  constructor(path: string) {
    this.path = path;
  }

  /** How far it has come. */
  async status(): Promise<ArchiveFileStatus> {
    const db = await this.#open();
    const count = (sql: string): number => (db.prepare(sql).get() as { n: number }).n;
    return {
      archiveId: this.#fact(db, 'archive') ?? '',
      namespace: this.#fact(db, 'namespace'),
      sessions: count('SELECT count(DISTINCT thread_id) AS n FROM runs'),
      checkpoints: count('SELECT count(*) AS n FROM checkpoints'),
      upTo: this.#fact(db, 'up_to'),
    };
  }

  /**
   * Takes the archive for a namespace, by its id.
   *
   * @returns the archive's id
   * @throws PerdureError `CONFLICT` when it belongs to another namespace, or is not the archive that was expected
   */
  async claim(namespaceId: string, namespace: string, expected: string | null): Promise<string> {
    const db = await this.#open();
    const claim = (): string => {
      const archiveId = this.#fact(db, 'archive') ?? '';
      if (expected !== null && expected !== archiveId) {
        throw new PerdureError(
          'CONFLICT',
          `${this.path} is not the archive that this exporter has written to (${expected}): bring that file back, or export into this one under another name`,
        );
      }
      const owner = this.#fact(db, 'namespace_id');
      if (owner !== null && owner !== namespaceId) {
        throw new PerdureError(
          'CONFLICT',
          `${this.path} is the archive of another namespace, ${this.#fact(db, 'namespace')}: choose another file`,
        );
      }
      this.#setFact(db, 'namespace_id', namespaceId);
      this.#setFact(db, 'namespace', namespace);
      return archiveId;
    };
    return inTransaction(db, claim);
  }

  /** Notes up to when the archive has everything. */
  async setUpTo(at: string): Promise<void> {
    this.#setFact(await this.#open(), 'up_to', at);
  }

  /** How often a thread was deleted. */
  async epoch(sessionId: string): Promise<number> {
    return epochOf(await this.#open(), sessionId);
  }

  /** What is known of a run, or `null`. */
  async run(sessionId: string, runId: string): Promise<ArchivedRun | null> {
    return findRun(await this.#open(), sessionId, runId);
  }

  /**
   * Stores a piece and moves the cursor, in one transaction.
   *
   * @returns the run, or `null` when somebody else has moved the cursor or deleted the thread: nothing was stored.
   */
  async append(piece: ArchivePiece): Promise<ArchivedRun | null> {
    const db = await this.#open();
    return inTransaction(db, () => writePiece(db, piece));
  }

  /** Where a checkpoint of this id has its place, if its run is known; it need not be stored. */
  async positionOf(sessionId: string, id: string): Promise<ArchivePosition | null> {
    const place = placeOf(id);
    if (place === null) return null;
    const run = await this.run(sessionId, place.runId);
    return run === null ? null : { startedAt: run.startedAt, eventId: place.eventId };
  }

  /** A checkpoint, or `null`. */
  async get(sessionId: string, id: string): Promise<Checkpoint | null> {
    const db = await this.#open();
    const place = placeOf(id);
    const run = place === null ? null : findRun(db, sessionId, place.runId);
    if (run === null || place === null) return null;
    const { eventId } = place;
    for (const checkpoint of this.#read(db, sessionId, place.runId, run.seq, {
      first: eventId,
      last: eventId,
    }))
      return checkpoint;
    return null;
  }

  /** Checkpoints of a thread before a place in it (default: all), newest first. */
  async list(sessionId: string, before: ArchivePosition | null, limit: number): Promise<Checkpoint[]> {
    const db = await this.#open();
    const { startedAt, eventId } = before ?? { startedAt: Number.MAX_SAFE_INTEGER, eventId: 0 };
    const rows = db
      .prepare(
        `SELECT c.run_seq, c.event_id, r.run_id FROM checkpoints c JOIN runs r ON r.seq = c.run_seq
         WHERE r.thread_id = ? AND (r.started_at < ? OR (r.started_at = ? AND c.event_id < ?))
         ORDER BY r.started_at DESC, r.seq DESC, c.event_id DESC LIMIT ?`,
      )
      .all(sessionId, startedAt, startedAt, eventId, limit) as (Pick<Row, 'run_seq' | 'event_id'> & {
      run_id: string;
    })[];
    const found: Checkpoint[] = [];
    for (let at = 0; at < rows.length; ) {
      const { run_seq, run_id, event_id: last } = rows[at] as (typeof rows)[number];
      const own = rows.slice(at).filter((row) => row.run_seq === run_seq);
      const first = own.at(-1)?.event_id ?? last;
      found.push(...[...this.#read(db, sessionId, run_id, run_seq, { first, last })].reverse());
      at += own.length;
    }
    return found;
  }

  /** The checkpoints of a run, oldest first, each read when it is asked for. */
  async *walk(sessionId: string, runId: string): AsyncGenerator<Checkpoint> {
    const db = await this.#open();
    const run = findRun(db, sessionId, runId);
    if (run === null) return;
    yield* this.#read(db, sessionId, runId, run.seq, { first: 1, last: run.cursor });
  }

  /** Removes a thread's checkpoints. An export that has begun does not bring them back. */
  async delete(sessionId: string): Promise<void> {
    const db = await this.#open();
    inTransaction(db, () => {
      db.prepare('DELETE FROM checkpoints WHERE run_seq IN (SELECT seq FROM runs WHERE thread_id = ?)').run(
        sessionId,
      );
      db.prepare('DELETE FROM runs WHERE thread_id = ?').run(sessionId);
      db.prepare(
        'INSERT INTO threads VALUES (?, 1) ON CONFLICT (thread_id) DO UPDATE SET epoch = epoch + 1',
      ).run(sessionId);
    });
  }

  /** Closes the file. The next call opens it again. */
  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = null;
    (await opening?.catch(() => null))?.close();
  }

  *#read(
    db: Database,
    sessionId: string,
    runId: string,
    runSeq: number,
    { first, last }: { first: number; last: number },
  ): Generator<Checkpoint> {
    const base = db
      .prepare('SELECT max(event_id) AS e FROM checkpoints WHERE run_seq = ? AND event_id <= ? AND whole = 1')
      .get(runSeq, first) as { e: number | null };
    let state: JsonObject | null = null;
    for (let at = base.e ?? 0; at <= last; ) {
      const rows = db
        .prepare(
          'SELECT * FROM checkpoints WHERE run_seq = ? AND event_id >= ? AND event_id <= ? ORDER BY event_id LIMIT ?',
        )
        .all(runSeq, at, last, WHOLE_EVERY) as Row[];
      for (const row of rows) {
        const id = `${runId}:${row.event_id}`;
        try {
          state = stateOf(row, state);
          if (row.event_id < first) continue;
          const { created_at, parent_id } = row;
          const metadata = JSON.parse(row.metadata) as JsonObject;
          const record = { id, thread_id: sessionId, created_at, state, parent_id, metadata };
          if (digestJson(record) !== row.digest) throw new Error('its digest is another');
          yield structuredClone(record);
        } catch (cause) {
          const why = cause instanceof Error ? cause.message : String(cause);
          throw new PerdureError(
            'CHECKPOINT_CORRUPTION',
            `${this.path}: checkpoint ${id} is not as it was stored: ${why}`,
            { details: { checkpointId: id }, cause },
          );
        }
      }
      at = (rows.at(-1)?.event_id ?? last) + 1;
    }
  }

  async #open(): Promise<Database> {
    this.#opening ??= openDatabase(this.path, ARCHIVE_FILE).then((db) => {
      db.prepare("INSERT INTO facts VALUES ('archive', ?) ON CONFLICT DO NOTHING").run(randomUUID());
      return db;
    });
    try {
      return await this.#opening;
    } catch (error) {
      // What stood in the way may be gone at the next call.
      this.#opening = null;
      throw error;
    }
  }

  #fact(db: Database, key: string): string | null {
    const row = db.prepare('SELECT value FROM facts WHERE key = ?').get(key);
    return row === undefined ? null : (row as { value: string }).value;
  }

  #setFact(db: Database, key: string, value: string): void {
    db.prepare('INSERT OR REPLACE INTO facts VALUES (?, ?)').run(key, value);
  }
}

function stateOf(row: Row, previous: JsonObject | null): JsonObject {
  if (row.whole === 1) return JSON.parse(row.state) as JsonObject;
  if (previous === null) throw new Error('the state that it changes is missing');
  applyChanges(previous, JSON.parse(row.state) as Change[]);
  return previous;
}
