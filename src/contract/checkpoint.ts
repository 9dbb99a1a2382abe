/** The contract of checkpoint savers. */
import type { JsonObject, JsonValue } from './json.ts';

/** One checkpoint: plain JSON, never changed once stored. */
export interface Checkpoint {
  /** Unique in its thread. */
  id: string;
  thread_id: string;
  /** ISO 8601 in UTC, for people: the order of checkpoints is that of their storing, not of this clock. */
  created_at: string;
  state: JsonObject;
  /** The checkpoint of the same thread that this one goes on from. */
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

/** How a checkpoint is stored. */
export interface PutOptions {
  /** The checkpoint that this one goes on from; it must be one of the same thread. Default: none. */
  parentId?: string | null | undefined;
  /** Default: `{}`. Of a session `{ by, reason }`, both needed. */
  metadata?: JsonObject | undefined;
  /**
   * The record's own id, so that a `put` whose answer was lost can be repeated: the same id with the same
   * content is stored once. Default: a new one for each call. A session has ids of its own, and refuses one.
   */
  id?: string | undefined;
}

/** Which checkpoint. */
export interface GetOptions {
  /** Default: the latest. */
  checkpointId?: string | undefined;
}

/** Which checkpoints. */
export interface ListOptions {
  /** Only those stored strictly before the checkpoint of this id. */
  before?: string | undefined;
  /** The most to return, a whole number. Default: 10. */
  limit?: number | undefined;
}

/**
 * Checkpoints of threads, in the order in which they were stored.
 *
 * All calls check their arguments: what is no string where an id belongs, or no whole number where a limit
 * belongs, is a `TypeError`; a blank or unusable id is `INVALID_ARGUMENT`. What was passed in and what is
 * returned share nothing with what is stored.
 */
export interface CheckpointSaver {
  /**
   * Stores a checkpoint. When it returns, the checkpoint is as durable as this saver is. After a throw it is
   * either stored or not: repeat the call with the same `id`.
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
   * Removes the thread's checkpoints and steps. An unknown thread is a no-op. A call that began before and
   * arrives after does not bring the thread back; one that begins afterwards starts the thread anew.
   */
  delete(threadId: string): Promise<void>;
  /** Stores a step of the thread; the same key overwrites. A thread may have steps before it has checkpoints. */
  putStep(threadId: string, key: string, value: JsonValue): Promise<StoredStep>;
  /** A step, or `null`. */
  getStep(threadId: string, key: string): Promise<StoredStep | null>;
  /** All steps of a thread, by key. */
  listSteps(threadId: string): Promise<StoredStep[]>;
}

/** Characters of a thread id, a checkpoint id and a step's key. */
export const CHECKPOINT_ID_LIMIT = 2_000;
