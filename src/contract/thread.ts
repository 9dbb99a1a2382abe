/**
 * Threads of checkpoints that are not sessions: the inputs and answers of their workflows.
 *
 * A thread is one workflow with its newest entries and an index of all others. Older entries are in sealed segments:
 * workflows that hold them as their input and never close, because retention removes only closed ones. A large state or
 * step is stored in parts, each the input of a workflow that never runs, and the thread holds a reference.
 */
import * as z from 'zod/mini';
import { CHECKPOINT_ID_LIMIT, type Checkpoint, type StoredStep } from './checkpoint.ts';
import { type ErrorCode, PerdureError } from './errors.ts';
import { canonicalJson, type JsonObject, type JsonValue, sha256Hex } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';

/** An entry: a checkpoint, or a step. The last step of a key counts. */
export type ThreadEntry =
  | ({ kind: 'checkpoint'; content?: ContentRef | undefined } & Omit<Checkpoint, 'thread_id'>)
  | ({ kind: 'step'; content?: ContentRef | undefined } & Omit<StoredStep, 'thread_id'>);

/** A state or step that is stored apart, in parts. The entry's own value is then `{}` or `null`. */
export interface ContentRef {
  /** The parts' workflow ids follow from it: {@link contentId}. */
  key: string;
  parts: number;
  /** SHA-256 of the text. */
  digest: string;
  /** The text is `{state, metadata}`, because the metadata is large, too. The entry's own metadata is then `{}`. */
  metadata?: true | undefined;
}

/** What the server may still hold from before a deletion. */
export interface Garbage {
  /** Runs of the thread, with their segments and the contents that these refer to. */
  runs: string[];
  contents: ContentRef[];
}

/** A sealed segment in the thread's index. */
export interface SegmentRef {
  /** The run of the thread that sealed it, which names the segment. */
  run: string;
  /** The {@link entryMark}s of its entries in order, without separators. */
  marks: string;
  checkpoints: number;
  steps: number;
}

/** Input of the thread's workflow: empty, or what one run passes to the next. */
export interface ThreadInput {
  threadId: string;
  /** How often the thread was deleted. Writes with another number are late and refused. */
  epoch: number;
  /** Oldest first. */
  segments: SegmentRef[];
  /** Oldest first. */
  entries: ThreadEntry[];
  garbage: Garbage;
}

export interface SegmentInput {
  threadId: string;
  epoch: number;
  entries: ThreadEntry[];
}

export interface ThreadPut {
  epoch: number;
  id: string;
  state: JsonObject;
  parent_id: string | null;
  metadata: JsonObject;
  content?: ContentRef | undefined;
}

const epoch = z.int().check(z.nonnegative());
const id = z.string().check(z.minLength(1), z.maxLength(CHECKPOINT_ID_LIMIT));
const object = z.record(z.string(), z.json()) as z.ZodMiniType<JsonObject>;

export const contentSchema: LazySchema<ContentRef> = lazySchema(() =>
  z.object({
    key: id,
    parts: z.int().check(z.positive(), z.maximum(100)),
    digest: id,
    metadata: z.optional(z.literal(true)),
  }),
);

/** Checks a {@link ThreadPut}, which any Temporal client may send. */
export const threadPutSchema: LazySchema<ThreadPut> = lazySchema(() =>
  z.object({
    epoch,
    id,
    state: object,
    parent_id: z.nullable(id),
    metadata: object,
    content: z.optional(contentSchema()),
  }),
);

/** The put is stored, now or before. Or an entry with this id is in a segment, and the caller must compare. */
export type ThreadPutResult = { created_at: string } | { segment: string };

/** A step to store. */
export interface ThreadPutStep {
  epoch: number;
  key: string;
  value: JsonValue;
  content?: ContentRef | undefined;
}

/** The step is stored. `replaced`: the previous value's content, to which nothing refers any more. */
export interface ThreadPutStepResult {
  updated_at: string;
  replaced?: ContentRef;
}

/** Checks a {@link ThreadPutStep}. */
export const threadPutStepSchema: LazySchema<ThreadPutStep> = lazySchema(() =>
  z.object({
    epoch,
    key: id,
    value: z.json(),
    content: z.optional(contentSchema()),
  }),
);

/** Writes that are sent together and applied in order, one by one. */
export interface ThreadWrites {
  writes: ({ put: ThreadPut } | { step: ThreadPutStep })[];
}

export const threadWritesSchema: LazySchema<ThreadWrites> = lazySchema(() =>
  z.object({
    writes: z.array(
      z.union([z.object({ put: threadPutSchema() }), z.object({ step: threadPutStepSchema() })]),
    ),
  }),
);

export type ThreadWriteResult =
  | ThreadPutResult
  | ThreadPutStepResult
  | { refused: { code: ErrorCode; message: string } };

export const garbageSchema: LazySchema<Garbage> = lazySchema(() =>
  z.object({
    runs: z.array(z.string()),
    contents: z.array(contentSchema()),
  }),
);

/** An entry, or the run whose segment has it. */
export type Found = { entry: ThreadEntry } | { segment: string } | null;

/** An id or key. `null` stands for the latest checkpoint. */
export interface FindInput {
  kind: ThreadEntry['kind'];
  id: string | null;
}

/** Checkpoints before one (default: all), newest first. */
export interface PageQuery {
  before: string | null;
  limit: number;
}

/** Checkpoints of the thread's own run, and the next segments, newest first. `null` when `before` is unknown. */
export type PageResult = { entries: ThreadEntry[]; segments: string[] } | null;

/** The steps of the thread's own run, and the segments with older ones, newest first. */
export interface StepsResult {
  entries: ThreadEntry[];
  segments: string[];
}

/** What a deletion leaves to remove, and the epoch that it ended. */
export interface DeleteResult extends Garbage {
  epoch: number;
}

/** The names of the thread's updates and queries. */
export const THREAD_UPDATE = {
  put: 'put',
  putStep: 'putStep',
  writes: 'writes',
  delete: 'delete',
  swept: 'swept',
} as const;
export const THREAD_QUERY = { find: 'find', page: 'page', steps: 'steps' } as const;
/** The failure of a write that must wait until the run has sealed. Send it again. */
export const THREAD_BUSY = 'THREAD_BUSY';
/** The failure of a deletion of an empty thread. */
export const THREAD_EMPTY = 'THREAD_EMPTY';
/** The memo with a thread's epoch, which shows without a worker. */
export const THREAD_MEMO = 'perdureEpoch';

/** Limits of threads in bytes of JSON, unless the name says otherwise. Larger values are refused, never cut. */
export const THREAD_LIMIT = {
  /** One checkpoint's state, or one step's value. */
  state: 20_000_000,
  /** Larger values are stored apart: the workflow sandbox is slow with them. */
  inline: 32_000,
  /** Characters of one part. */
  part: 500_000,
  /** One checkpoint without its state. */
  entry: 380_000,
  /** One write. The server delivers ten at a time, and the task's completion must repeat them within 4 MB. */
  write: 200_000,
  /** Limits of writes that are sent together. */
  togetherBytes: 100_000,
  together: 50,
  /** Bytes and entries at which a run seals. */
  sealBytes: 400_000,
  sealEntries: 250,
  /** What one run may hold and pass on: it must fit into a workflow's input and a query's answer. */
  held: 1_750_000,
  /** The index of the segments, which passes from run to run. About 60,000 entries. */
  index: 800_000,
} as const;

/** The error of a write to a thread whose index is full. */
export function threadFull(threadId: string, size: number): PerdureError {
  const limit = THREAD_LIMIT.index;
  return new PerdureError(
    'TOO_LARGE',
    `Thread ${threadId} is full: its index is ${size} bytes of JSON, the limit is ${limit}, which is about 60,000 checkpoints and steps. It keeps what it has. Write to another thread, or delete this one and start it again.`,
    { details: { field: 'index of the thread', size, limit } },
  );
}

const MARK_LENGTH = 12;

/** A short mark of an entry. Another entry may share it, so callers check what they find. */
export function entryMark(kind: ThreadEntry['kind'], id: string): string {
  return sha256Hex(`${kind}:${id}`).slice(0, MARK_LENGTH);
}

/** Whether a segment may hold an entry with this mark. */
export function hasMark({ marks }: SegmentRef, mark: string): boolean {
  for (let at = marks.indexOf(mark); at >= 0; at = marks.indexOf(mark, at + 1)) {
    if (at % MARK_LENGTH === 0) return true;
  }
  return false;
}

/** Whether two puts of one id have the same content. */
export function samePut(a: Omit<ThreadPut, 'epoch' | 'id'>, b: Omit<ThreadPut, 'epoch' | 'id'>): boolean {
  const text = ({ state, parent_id, metadata, content: apart }: typeof a): string =>
    canonicalJson({ state, parent_id, metadata, digest: apart?.digest ?? null });
  return a.content?.metadata === b.content?.metadata && text(a) === text(b);
}

export function entryId(entry: ThreadEntry): string {
  return entry.kind === 'checkpoint' ? entry.id : entry.key;
}

/** Longer thread ids are shortened in the workflow id: some servers store only 255 characters. */
const READABLE = 200;

/** The id of a thread's workflow. */
export function threadWorkflowId(threadId: string): string {
  if (threadId.length <= READABLE) return `perdure-thread/${threadId}`;
  // The cut may have split a surrogate pair.
  const beginning = threadId.slice(0, READABLE - 60).replace(/\p{Surrogate}/u, '');
  return `perdure-thread/${beginning}~${sha256Hex(threadId)}`;
}

export function contentId(key: string, part: number): string {
  return `perdure-content/${key}/${part}`;
}

/** The id of the workflow of a run's segment. */
export function segmentId(run: string): string {
  return `perdure-segment/${run}`;
}
