/** The checkpoint saver's contract: what any home of checkpoints offers, and how its arguments are checked. */
import { PerdureError } from './errors.ts';
import { canonicalJson, type JsonObject, type JsonValue, toJson } from './json.ts';

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

/** Checks an id. @throws TypeError when it is no string; PerdureError `INVALID_ARGUMENT` when it is unusable */
export function checkId(field: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw new TypeError(`${field} must be a string, not ${typeOf(value)}`);
  const problem =
    value.trim() === ''
      ? 'is blank'
      : value.length > CHECKPOINT_ID_LIMIT
        ? `has ${value.length} characters, the limit is ${CHECKPOINT_ID_LIMIT}`
        : // Stores would cut or change these, and two ids would become one.
          /\p{Surrogate}|\0/u.test(value)
          ? 'contains a NUL or half of a surrogate pair'
          : null;
  if (problem !== null)
    throw new PerdureError('INVALID_ARGUMENT', `${field} ${problem}`, { details: { field } });
}

/** A `put` whose arguments are checked and copied. */
export interface CheckedPut {
  threadId: string;
  state: JsonObject;
  parentId: string | null;
  metadata: JsonObject;
  /** `null` when the saver is to make one. */
  id: string | null;
}

/** Checks and copies the arguments of `put`, before anything waits. */
export function checkPut(threadId: unknown, state: unknown, options: PutOptions = {}): CheckedPut {
  checkId('threadId', threadId);
  const { parentId = null, metadata = {}, id = null } = options;
  if (parentId !== null) checkId('parentId', parentId);
  if (id !== null) checkId('id', id);
  return {
    threadId,
    state: jsonObject('state', state),
    parentId,
    metadata: jsonObject('metadata', metadata),
    id,
  };
}

/** Checks the arguments of `get`; `null` stands for the latest. */
export function checkGet(threadId: unknown, options: GetOptions = {}): string | null {
  checkId('threadId', threadId);
  const { checkpointId } = options;
  if (checkpointId === undefined) return null;
  checkId('checkpointId', checkpointId);
  return checkpointId;
}

/** Checks the arguments of `list`. */
export function checkList(
  threadId: unknown,
  options: ListOptions = {},
): { before: string | null; limit: number } {
  checkId('threadId', threadId);
  const { before, limit = 10 } = options;
  if (before !== undefined) checkId('before', before);
  if (!Number.isInteger(limit)) throw new TypeError(`limit must be a whole number, not ${String(limit)}`);
  return { before: before ?? null, limit };
}

/** Checks and copies the arguments of `putStep`. */
export function checkStep(threadId: unknown, key: unknown, value: unknown): JsonValue {
  checkId('threadId', threadId);
  checkId('key', key);
  return toJson(value, 'value');
}

/** What makes two puts of one id the same put. */
export function sameContent(
  a: Pick<Checkpoint, 'state' | 'parent_id' | 'metadata'>,
  b: Pick<Checkpoint, 'state' | 'parent_id' | 'metadata'>,
): boolean {
  const text = ({ state, parent_id, metadata }: typeof a): string =>
    canonicalJson({ state, parent_id, metadata });
  return text(a) === text(b);
}

/** The error of a `parentId` that is not a checkpoint of the thread. */
export function unknownParent(threadId: string, parentId: string): PerdureError {
  return new PerdureError(
    'INVALID_ARGUMENT',
    `parentId: ${parentId} is not a checkpoint of thread ${threadId}`,
    {
      details: { field: 'parentId' },
    },
  );
}

/** The error of an `id` that is stored with other content. */
export function idTaken(threadId: string, id: string): PerdureError {
  return new PerdureError(
    'CONFLICT',
    `id: thread ${threadId} has a checkpoint ${id} with another state, parent or metadata. A checkpoint is never overwritten: store this one under a new id.`,
    { details: { field: 'id' } },
  );
}

/** The error of a write that a deletion has overtaken. */
export function deletedMeanwhile(threadId: string): PerdureError {
  return new PerdureError(
    'CONFLICT',
    `Thread ${threadId} was deleted while this write was under way, and the write is dropped. Write again to begin the thread anew.`,
  );
}

function jsonObject(field: string, value: unknown): JsonObject {
  const copy = toJson(value, field);
  if (typeof copy !== 'object' || copy === null || Array.isArray(copy)) {
    throw new PerdureError('NOT_JSON', `${field} must be a plain JSON object, not ${typeOf(copy)}`, {
      details: { path: field, found: typeOf(copy) },
    });
  }
  return copy;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : typeof value;
}
