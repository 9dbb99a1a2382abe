import { randomUUID } from 'node:crypto';
import type {
  Checkpoint,
  CheckpointSaver,
  GetOptions,
  ListOptions,
  PutOptions,
  StoredStep,
} from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import type { JsonObject, JsonValue } from '../contract/json.ts';
import {
  checkGet,
  checkId,
  checkList,
  checkPut,
  checkStep,
  deletedMeanwhile,
  idTaken,
  sameContent,
  unknownParent,
} from '../thread/checks.ts';
import { byKey } from './memory-saver.ts';
import { type Database, inTransaction, openDatabase } from './sqlite-file.ts';

interface CheckpointRow {
  id: string;
  thread_id: string;
  created_at: string;
  state: string;
  parent_id: string | null;
  metadata: string;
}
type StepRow = Record<'thread_id' | 'key' | 'value' | 'updated_at', string>;

/**
 * Checkpoints in an SQLite file (WAL, every `put` synced), which several processes may use. Needs the package `libsql`.
 *
 * The first call opens the file. It rejects with `CHECKPOINT_CORRUPTION` for a file that is not a database, belongs to
 * another program or has an unknown version, and with `INVALID_ARGUMENT` for a file that cannot be opened.
 */
export class SqliteSaver implements CheckpointSaver {
  readonly #path: string;
  readonly #now: () => number;
  #opening: Promise<Database> | null = null;
  #closed = false;

  /**
   * @param path - the file, which is created when it does not exist. `:memory:` keeps it in memory.
   * @param options - `now`: the clock of `created_at`, in milliseconds since 1970. Default: `Date.now`.
   */
  constructor(path: string, options: { now?: () => number } = {}) {
    this.#path = path;
    this.#now = options.now ?? Date.now;
  }

  async put(threadId: string, state: JsonObject, options: PutOptions = {}): Promise<Checkpoint> {
    const put = checkPut(threadId, state, options);
    const db = await this.#open();
    const epoch = epochOf(db, threadId);
    const checkpoint: Checkpoint = {
      id: put.id ?? randomUUID(),
      thread_id: threadId,
      created_at: this.#timestamp(),
      state: put.state,
      parent_id: put.parentId,
      metadata: put.metadata,
    };
    return inTransaction(db, (): Checkpoint => {
      if (epochOf(db, threadId) !== epoch) throw deletedMeanwhile(threadId);
      const known = put.id === null ? null : this.#find(db, threadId, put.id);
      if (known !== null) {
        if (!sameContent(known, checkpoint)) throw idTaken(threadId, known.id);
        return known;
      }
      if (put.parentId !== null && this.#seq(db, threadId, put.parentId) === null)
        throw unknownParent(threadId, put.parentId);
      db.prepare(
        'INSERT INTO checkpoints (thread_id, id, created_at, state, parent_id, metadata) VALUES (?, ?, ?, ?, ?, ?)',
      ).run(
        threadId,
        checkpoint.id,
        checkpoint.created_at,
        JSON.stringify(checkpoint.state),
        checkpoint.parent_id,
        JSON.stringify(checkpoint.metadata),
      );
      return checkpoint;
    });
  }

  async get(threadId: string, options: GetOptions = {}): Promise<Checkpoint | null> {
    const id = checkGet(threadId, options);
    const db = await this.#open();
    if (id !== null) return this.#find(db, threadId, id);
    const row = db
      .prepare('SELECT * FROM checkpoints WHERE thread_id = ? ORDER BY seq DESC LIMIT 1')
      .get(threadId);
    return row === undefined ? null : this.#read(row as CheckpointRow);
  }

  async list(threadId: string, options: ListOptions = {}): Promise<Checkpoint[]> {
    const { before, limit } = checkList(threadId, options);
    const db = await this.#open();
    if (limit <= 0) return [];
    const end = before === null ? Number.MAX_SAFE_INTEGER : this.#seq(db, threadId, before);
    if (end === null) return [];
    return db
      .prepare('SELECT * FROM checkpoints WHERE thread_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?')
      .all(threadId, end, Math.min(limit, Number.MAX_SAFE_INTEGER))
      .map((row) => this.#read(row as CheckpointRow));
  }

  async delete(threadId: string): Promise<void> {
    checkId('threadId', threadId);
    const db = await this.#open();
    inTransaction(db, () => {
      const { changes } = db.prepare('DELETE FROM checkpoints WHERE thread_id = ?').run(threadId);
      const steps = db.prepare('DELETE FROM steps WHERE thread_id = ?').run(threadId);
      // An unknown thread gets no mark, so that deletions of random ids do not fill the file.
      if (changes + steps.changes === 0) return;
      db.prepare(
        'INSERT INTO threads VALUES (?, 1) ON CONFLICT (thread_id) DO UPDATE SET epoch = epoch + 1',
      ).run(threadId);
    });
  }

  async putStep(threadId: string, key: string, value: JsonValue): Promise<StoredStep> {
    const copy = checkStep(threadId, key, value);
    const db = await this.#open();
    const epoch = epochOf(db, threadId);
    const step: StoredStep = { thread_id: threadId, key, value: copy, updated_at: this.#timestamp() };
    inTransaction(db, () => {
      if (epochOf(db, threadId) !== epoch) throw deletedMeanwhile(threadId);
      db.prepare('INSERT OR REPLACE INTO steps (thread_id, key, value, updated_at) VALUES (?, ?, ?, ?)').run(
        threadId,
        key,
        JSON.stringify(copy),
        step.updated_at,
      );
    });
    return step;
  }

  async getStep(threadId: string, key: string): Promise<StoredStep | null> {
    checkId('threadId', threadId);
    checkId('key', key);
    const db = await this.#open();
    const row = db.prepare('SELECT * FROM steps WHERE thread_id = ? AND key = ?').get(threadId, key);
    return row === undefined ? null : this.#readStep(row as StepRow);
  }

  async listSteps(threadId: string): Promise<StoredStep[]> {
    checkId('threadId', threadId);
    const db = await this.#open();
    const rows = db.prepare('SELECT * FROM steps WHERE thread_id = ?').all(threadId) as StepRow[];
    return rows.map((row) => this.#readStep(row)).sort(byKey);
  }

  /** Closes the file. Later calls reject with `INVALID_ARGUMENT`. */
  async close(): Promise<void> {
    this.#closed = true;
    const opening = this.#opening;
    this.#opening = null;
    (await opening?.catch(() => null))?.close();
  }

  async #open(): Promise<Database> {
    if (this.#closed) throw new PerdureError('INVALID_ARGUMENT', `The saver of ${this.#path} is closed`);
    this.#opening ??= openDatabase(this.#path);
    try {
      return await this.#opening;
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }

  #timestamp(): string {
    return new Date(this.#now()).toISOString();
  }

  #find(db: Database, threadId: string, id: string): Checkpoint | null {
    const row = db.prepare('SELECT * FROM checkpoints WHERE thread_id = ? AND id = ?').get(threadId, id);
    return row === undefined ? null : this.#read(row as CheckpointRow);
  }

  #seq(db: Database, threadId: string, id: string): number | null {
    const row = db.prepare('SELECT seq FROM checkpoints WHERE thread_id = ? AND id = ?').get(threadId, id);
    return row === undefined ? null : (row as { seq: number }).seq;
  }

  #read({ id, thread_id, created_at, state, parent_id, metadata }: CheckpointRow): Checkpoint {
    return {
      id,
      thread_id,
      created_at,
      state: this.#parse(`state of checkpoint ${id}`, state) as JsonObject,
      parent_id,
      metadata: this.#parse(`metadata of checkpoint ${id}`, metadata) as JsonObject,
    };
  }

  #readStep({ thread_id, key, value, updated_at }: StepRow): StoredStep {
    return { thread_id, key, value: this.#parse(`value of step ${key}`, value), updated_at };
  }

  #parse(what: string, text: string): JsonValue {
    try {
      return JSON.parse(text) as JsonValue;
    } catch (cause) {
      throw new PerdureError('CHECKPOINT_CORRUPTION', `${this.#path}: the ${what} is not JSON`, { cause });
    }
  }
}

function epochOf(db: Database, threadId: string): number {
  const row = db.prepare('SELECT epoch FROM threads WHERE thread_id = ?').get(threadId);
  return row === undefined ? 0 : (row as { epoch: number }).epoch;
}
