import { randomUUID } from 'node:crypto';
import type { Change } from '../checkpoints/diff.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { isPerdureError, messageOf, PerdureError } from '../contract/errors.ts';
import { copyJson, digestJson, type JsonObject } from '../contract/json.ts';
import { isBelow } from '../contract/tree.ts';
import { checkpointPlace } from '../temporal/checkpoint-id.ts';
import { type ArchiveDatabase, type ArchiveStatements, WHOLE_EVERY } from './database.ts';
import { applyChanges } from './deltas.ts';
import { type ArchiveOptions, RowCodec } from './row-codec.ts';
import { type ArchivedRun, epochOf, findRun, type Row } from './rows.ts';
import { type ArchivePiece, writePiece } from './write-piece.ts';

/** The progress of an archive, as stored in it. */
export interface ArchiveFileStatus {
  archiveId: string;
  /** The archive's namespace. `null` until something was exported. */
  namespace: string | null;
  sessions: number;
  checkpoints: number;
  /** ISO 8601. The archive has everything that was in the histories at this time. */
  upTo: string | null;
}

/** A position in a thread: the start of the run, and the event. */
export interface ArchivePosition {
  startedAt: number;
  eventId: number;
}

/**
 * An archive of sessions' checkpoints, for any database. Readers and the exporter may use it at the same time. It opens
 * at the first call, and again after a failed attempt. Reading a record that has changed since it was stored throws
 * `CHECKPOINT_CORRUPTION`.
 */
export abstract class CheckpointArchive {
  /** The location, for messages. Holds no secrets. */
  abstract readonly place: string;
  #opening: Promise<ArchiveDatabase> | null = null;
  readonly #codec: RowCodec;

  constructor(options: ArchiveOptions = {}) {
    this.#codec = new RowCodec(options);
  }

  /** Opens the database, and creates the tables in a new one. */
  protected abstract connect(): Promise<ArchiveDatabase>;

  /** The progress of the archive. */
  async status(): Promise<ArchiveFileStatus> {
    const db = await this.#open();
    const count = async (sql: string): Promise<number> => Number((await db.all(sql))[0]?.['n'] ?? 0);
    return {
      archiveId: (await this.#fact(db, 'archive')) ?? '',
      namespace: await this.#fact(db, 'namespace'),
      sessions: await count('SELECT count(DISTINCT thread_id) AS n FROM runs'),
      checkpoints: await count('SELECT count(*) AS n FROM checkpoints'),
      upTo: await this.#fact(db, 'up_to'),
    };
  }

  /**
   * Binds the archive to a namespace, by its id.
   *
   * @returns the archive's id
   * @throws PerdureError `CONFLICT` when it belongs to another namespace, or is not the expected archive
   */
  async claim(namespaceId: string, namespace: string, expected: string | null): Promise<string> {
    const db = await this.#open();
    return db.transaction(async (writing) => {
      const archiveId = (await this.#fact(writing, 'archive')) ?? '';
      if (expected !== null && expected !== archiveId) {
        throw new PerdureError(
          'CONFLICT',
          `${this.place} is not the archive that this exporter wrote to (${expected}). Restore that archive, or export into this one with another --name`,
        );
      }
      const owner = await this.#fact(writing, 'namespace_id');
      if (owner !== null && owner !== namespaceId) {
        throw new PerdureError(
          'CONFLICT',
          `${this.place} belongs to another namespace, ${await this.#fact(writing, 'namespace')}. Choose another archive`,
        );
      }
      await setFact(writing, 'namespace_id', namespaceId);
      await setFact(writing, 'namespace', namespace);
      return archiveId;
    });
  }

  /** Records the time up to which the archive has everything. */
  async setUpTo(at: string): Promise<void> {
    const db = await this.#open();
    await db.transaction((writing) => setFact(writing, 'up_to', at));
  }

  /** How often a thread was deleted. */
  async epoch(sessionId: string): Promise<number> {
    return epochOf(await this.#open(), sessionId);
  }

  /** Reads a run, or `null`. */
  async run(sessionId: string, runId: string): Promise<ArchivedRun | null> {
    return findRun(await this.#open(), sessionId, runId);
  }

  /**
   * Stores a piece and moves the cursor, in one transaction.
   *
   * @returns the run, or `null` when another process has moved the cursor or deleted the thread. Then nothing was
   * stored.
   */
  async append(piece: ArchivePiece): Promise<ArchivedRun | null> {
    const db = await this.#open();
    const place = await this.#placeOf(db, piece.sessionId);
    return db.transaction((writing) => writePiece(writing, piece, (json) => this.#codec.encode(place, json)));
  }

  /** The position of a checkpoint id, if its run is known. The checkpoint itself need not be stored. */
  async positionOf(sessionId: string, id: string): Promise<ArchivePosition | null> {
    const place = checkpointPlace(id);
    if (place === null) return null;
    const run = await this.run(sessionId, place.runId);
    return run === null ? null : { startedAt: run.startedAt, eventId: place.eventId };
  }

  /** A checkpoint, or `null`. */
  async get(sessionId: string, id: string): Promise<Checkpoint | null> {
    const db = await this.#open();
    const place = checkpointPlace(id);
    const run = place === null ? null : await findRun(db, sessionId, place.runId);
    if (run === null || place === null) return null;
    const { eventId } = place;
    const range = { first: eventId, last: eventId };
    for await (const checkpoint of this.#read(db, sessionId, place.runId, run.seq, range)) return checkpoint;
    return null;
  }

  /**
   * Checkpoints of a thread before a position (`null`: all), newest first. An unreadable checkpoint has an empty state,
   * and `metadata.unreadable` says why.
   */
  async list(sessionId: string, before: ArchivePosition | null, limit: number): Promise<Checkpoint[]> {
    const db = await this.#open();
    const { startedAt, eventId } = before ?? { startedAt: Number.MAX_SAFE_INTEGER, eventId: 0 };
    const rows = await db.all<Pick<Row, 'run_seq' | 'event_id'> & { run_id: string }>(
      `SELECT c.run_seq, c.event_id, r.run_id FROM checkpoints c JOIN runs r ON r.seq = c.run_seq
         WHERE r.thread_id = ? AND (r.started_at < ? OR (r.started_at = ? AND c.event_id < ?))
         ORDER BY r.started_at DESC, r.seq DESC, c.event_id DESC LIMIT ?`,
      sessionId,
      startedAt,
      startedAt,
      eventId,
      limit,
    );
    const found: Checkpoint[] = [];
    for (let at = 0; at < rows.length; ) {
      const { run_seq, run_id, event_id: last } = rows[at] as (typeof rows)[number];
      const own = rows.slice(at).filter((row) => row.run_seq === run_seq);
      const first = own.at(-1)?.event_id ?? last;
      const part: Checkpoint[] = [];
      for await (const checkpoint of this.#read(db, sessionId, run_id, run_seq, { first, last, mark: true }))
        part.push(checkpoint);
      found.push(...part.reverse());
      at += own.length;
    }
    return found;
  }

  /** The runs of a thread, oldest first. */
  async runs(sessionId: string): Promise<string[]> {
    const db = await this.#open();
    const rows = await db.all<{ run_id: string }>(
      'SELECT run_id FROM runs WHERE thread_id = ? ORDER BY started_at, seq',
      sessionId,
    );
    return rows.map(({ run_id }) => run_id);
  }

  /** The checkpoints of a run, oldest first. Each is read on demand. */
  async *walk(sessionId: string, runId: string): AsyncGenerator<Checkpoint> {
    const db = await this.#open();
    const run = await findRun(db, sessionId, runId);
    if (run === null) return;
    yield* this.#read(db, sessionId, runId, run.seq, { first: 1, last: run.cursor });
  }

  /**
   * Removes a thread's checkpoints, and those of the sub-agents below a session. A running export does not restore
   * them.
   */
  async delete(sessionId: string): Promise<void> {
    for (const id of await this.#below(sessionId)) await this.#deleteOne(id);
    await this.#deleteOne(sessionId);
  }

  async #below(sessionId: string): Promise<string[]> {
    const db = await this.#open();
    const prefix = `${sessionId}/`;
    const rows = await db.all<{ thread_id: string }>(
      'SELECT DISTINCT thread_id FROM runs WHERE substr(thread_id, 1, ?) = ?',
      Array.from(prefix).length,
      prefix,
    );
    const found: string[] = [];
    for (const { thread_id: id } of rows) {
      if (!isBelow(id, sessionId)) continue;
      // A person may have chosen an id like that of a sub-agent.
      const [latest] = await this.list(id, null, 1);
      if (latest?.state['parent'] !== undefined || latest?.metadata['unreadable'] !== undefined)
        found.push(id);
    }
    return found;
  }

  async #deleteOne(sessionId: string): Promise<void> {
    const db = await this.#open();
    await db.transaction(async (writing) => {
      await writing.all(
        'DELETE FROM checkpoints WHERE run_seq IN (SELECT seq FROM runs WHERE thread_id = ?)',
        sessionId,
      );
      await writing.all('DELETE FROM runs WHERE thread_id = ?', sessionId);
      await writing.all(
        'INSERT INTO threads VALUES (?, 1) ON CONFLICT (thread_id) DO UPDATE SET epoch = threads.epoch + 1',
        sessionId,
      );
    });
  }

  /** Closes it. The next call opens it again. */
  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = null;
    await (await opening?.catch(() => null))?.close();
  }

  /** @param mark - whether an unreadable checkpoint is marked (see {@link CheckpointArchive.list}) instead of thrown */
  async *#read(
    db: ArchiveStatements,
    sessionId: string,
    runId: string,
    runSeq: number,
    { first, last, mark = false }: { first: number; last: number; mark?: boolean },
  ): AsyncGenerator<Checkpoint> {
    const [base] = await db.all<{ e: number | null }>(
      'SELECT max(event_id) AS e FROM checkpoints WHERE run_seq = ? AND event_id <= ? AND whole = 1',
      runSeq,
      first,
    );
    const place = await this.#placeOf(db, sessionId);
    let state: JsonObject | null = null;
    let before: number | null = null;
    /** What is missing or broken since the last whole state: the likely cause when a later row does not fit. */
    let gap: string | null = null;
    for (let at = base?.e ?? 0; at <= last; ) {
      const rows = await db.all<Row>(
        'SELECT * FROM checkpoints WHERE run_seq = ? AND event_id >= ? AND event_id <= ? ORDER BY event_id LIMIT ?',
        runSeq,
        at,
        last,
        WHOLE_EVERY,
      );
      for (const row of rows) {
        const id = `${runId}:${row.event_id}`;
        const { created_at, parent_id } = row;
        const parent = checkpointPlace(parent_id ?? '');
        // A whole state does not need the rows before it.
        if (row.whole === 1) gap = null;
        else if (before !== null && parent?.runId === runId && parent.eventId > before)
          gap = `the row of checkpoint ${parent_id} is missing`;
        before = row.event_id;
        try {
          state = stateOf(row.whole, await this.#codec.decode(place, row.state), state);
          if (row.event_id < first) continue;
          const metadata = JSON.parse(await this.#codec.decode(place, row.metadata)) as JsonObject;
          const record = { id, thread_id: sessionId, created_at, state, parent_id, metadata };
          if (digestJson(record) !== row.digest) throw new Error('its digest differs');
          yield copyJson(record);
        } catch (cause) {
          const locked = isPerdureError(cause, 'ENCRYPTED') || isPerdureError(cause, 'UNKNOWN_KEY');
          if (locked && !mark) throw cause;
          const why = gap ?? messageOf(cause);
          if (row.event_id < first) {
            gap = why;
            continue;
          }
          const message = `${this.place}: checkpoint ${id} has changed since it was stored: ${why}`;
          if (!mark)
            throw new PerdureError('CHECKPOINT_CORRUPTION', message, {
              details: { checkpointId: id },
              cause,
            });
          yield { id, thread_id: sessionId, created_at, state: {}, parent_id, metadata: { unreadable: why } };
        }
      }
      at = (rows.at(-1)?.event_id ?? last) + 1;
    }
  }

  async #open(): Promise<ArchiveDatabase> {
    this.#opening ??= this.connect().then(async (db) => {
      await db.transaction((writing) =>
        writing.all("INSERT INTO facts VALUES ('archive', ?) ON CONFLICT DO NOTHING", randomUUID()),
      );
      return db;
    });
    try {
      return await this.#opening;
    } catch (error) {
      // The next call tries again.
      this.#opening = null;
      throw error;
    }
  }

  /** The context that payload codecs get for a thread's records. */
  async #placeOf(
    db: ArchiveStatements,
    sessionId: string,
  ): Promise<{ namespace: string; sessionId: string }> {
    return { namespace: (await this.#fact(db, 'namespace')) ?? '', sessionId };
  }

  async #fact(db: ArchiveStatements, key: string): Promise<string | null> {
    const [row] = await db.all<{ value: string }>('SELECT value FROM facts WHERE key = ?', key);
    return row?.value ?? null;
  }
}

async function setFact(db: ArchiveStatements, key: string, value: string): Promise<void> {
  await db.all(
    'INSERT INTO facts VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    key,
    value,
  );
}

function stateOf(whole: number, json: string, previous: JsonObject | null): JsonObject {
  if (whole === 1) return JSON.parse(json) as JsonObject;
  if (previous === null) throw new Error('the state before it is missing');
  applyChanges(previous, JSON.parse(json) as Change[]);
  return previous;
}
