/** The contract of checkpoint savers. */
import type { JsonObject, JsonValue } from './json.ts';

/** One checkpoint: plain JSON that never changes. */
export interface Checkpoint {
  /** Unique in its thread. */
  id: string;
  thread_id: string;
  /** ISO 8601 in UTC, for people. Checkpoints are ordered as they were stored, not by this time. */
  created_at: string;
  state: JsonObject;
  /** The checkpoint of the same thread that this one follows. */
  parent_id: string | null;
  metadata: JsonObject;
}

/** One entry of the keyed store beside a thread's checkpoints. */
export interface StoredStep {
  thread_id: string;
  key: string;
  value: JsonValue;
  /** ISO 8601 in UTC. */
  updated_at: string;
}

export interface PutOptions {
  /** The checkpoint of the same thread that this one follows. Default: none. */
  parentId?: string | null | undefined;
  /** Default: `{}`. A session needs `{ by, reason }`. */
  metadata?: JsonObject | undefined;
  /**
   * An id of your own, so that you can repeat a `put` whose answer was lost. Default: a new id. Checkpoints of sessions
   * have ids of their own.
   */
  id?: string | undefined;
}

export interface GetOptions {
  /** Default: the latest. */
  checkpointId?: string | undefined;
}

export interface ListOptions {
  /** Only those stored strictly before the checkpoint of this id. */
  before?: string | undefined;
  /** The most to return, a whole number. Default: 10. */
  limit?: number | undefined;
}

/**
 * Checkpoints of threads, in the order in which they were stored.
 *
 * All methods check their arguments. They throw a `TypeError` for an id that is not a string or a limit that is not a
 * whole number, and `INVALID_ARGUMENT` for a blank or unusable id. Stored data is copied on the way in and out: later
 * changes of an argument or a result do not affect it.
 */
export interface CheckpointSaver {
  /**
   * Stores a checkpoint as durably as this saver can. After an error it is either stored or not: repeat the call with
   * the same `id`.
   *
   * @throws PerdureError `NOT_JSON` with the path of a value that JSON would change or lose; `TOO_LARGE`;
   * `INVALID_ARGUMENT` when `parentId` is not a checkpoint of this thread; `CONFLICT` when `id` is stored with
   * other content, or when the thread was deleted while the call was under way.
   */
  put(threadId: string, state: JsonObject, options?: PutOptions): Promise<Checkpoint>;
  /** A checkpoint, or `null` when the thread or the id is unknown, or the id is another thread's. */
  get(threadId: string, options?: GetOptions): Promise<Checkpoint | null>;
  /** Checkpoints, newest first. An unknown thread, an unknown `before` or a `limit` of 0 or less: `[]`. */
  list(threadId: string, options?: ListOptions): Promise<Checkpoint[]>;
  /**
   * Removes the thread's checkpoints and steps. Does nothing for an unknown thread. A write that began before the
   * deletion and arrives after it does not bring the thread back. A write that begins later starts the thread anew.
   */
  delete(threadId: string): Promise<void>;
  /** Stores a step, overwriting the same key. A thread may have steps before it has checkpoints. */
  putStep(threadId: string, key: string, value: JsonValue): Promise<StoredStep>;
  /** A step, or `null`. */
  getStep(threadId: string, key: string): Promise<StoredStep | null>;
  /** All steps of a thread, by key. */
  listSteps(threadId: string): Promise<StoredStep[]>;
}

/** The most characters of a thread id, a checkpoint id or a step's key. */
export const CHECKPOINT_ID_LIMIT = 2_000;
