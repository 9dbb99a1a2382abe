/** Checks the arguments of savers' methods, and makes the errors that savers share. */
import {
  CHECKPOINT_ID_LIMIT,
  type Checkpoint,
  type GetOptions,
  type ListOptions,
  type PutOptions,
} from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonObject, type JsonValue, toJson } from '../contract/json.ts';

/** Checks an id. @throws TypeError when it is not a string; PerdureError `INVALID_ARGUMENT` when it is unusable */
export function checkId(field: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw new TypeError(`${field} must be a string, not ${typeOf(value)}`);
  const problem =
    value.trim() === ''
      ? 'is blank'
      : value.length > CHECKPOINT_ID_LIMIT
        ? `has ${value.length} characters, the limit is ${CHECKPOINT_ID_LIMIT}`
        : // Stores would cut or change such ids, and two ids would become one.
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
  /** `null`: the saver makes an id. */
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

/** Whether two puts of one id have the same content. */
export function sameContent(
  a: Pick<Checkpoint, 'state' | 'parent_id' | 'metadata'>,
  b: Pick<Checkpoint, 'state' | 'parent_id' | 'metadata'>,
): boolean {
  const text = ({ state, parent_id, metadata }: typeof a): string =>
    canonicalJson({ state, parent_id, metadata });
  return text(a) === text(b);
}

/** The error for a `parentId` that is not a checkpoint of the thread. */
export function unknownParent(threadId: string, parentId: string): PerdureError {
  return new PerdureError(
    'INVALID_ARGUMENT',
    `parentId: ${parentId} is not a checkpoint of thread ${threadId}`,
    {
      details: { field: 'parentId' },
    },
  );
}

/** The error for an `id` that is stored with other content. */
export function idTaken(threadId: string, id: string): PerdureError {
  return new PerdureError(
    'CONFLICT',
    `id: thread ${threadId} already has a checkpoint ${id} with another state, parent or metadata. Store this one under a new id.`,
    { details: { field: 'id' } },
  );
}

/** The error for a write that a deletion has overtaken. */
export function deletedMeanwhile(threadId: string): PerdureError {
  return new PerdureError(
    'CONFLICT',
    `Thread ${threadId} was deleted during this write, and the write was dropped. Write again to start the thread anew.`,
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
