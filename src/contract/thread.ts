/**
 * Threads of checkpoints that are no session: what their workflows are given, asked and answer.
 *
 * A thread is one workflow, which holds its newest entries and an index of all others. Older entries lie in
 * sealed segments: workflows that hold them as their input, do nothing and never close, because retention only
 * eats what is closed. A large state or step lies in parts in workflows of its own, whose first task is put off for ever:
 * no worker ever sees it, and the thread holds a reference.
 */
import * as z from 'zod/mini';
import { CHECKPOINT_ID_LIMIT, type Checkpoint, type StoredStep } from './checkpoint.ts';
import { type ErrorCode, PerdureError } from './errors.ts';
import { canonicalJson, type JsonObject, type JsonValue, sha256Hex } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';

/** What a thread holds: checkpoints, and steps of which the last of a key counts. */
export type ThreadEntry =
  | ({ kind: 'checkpoint'; content?: ContentRef | undefined } & Omit<Checkpoint, 'thread_id'>)
  | ({ kind: 'step'; content?: ContentRef | undefined } & Omit<StoredStep, 'thread_id'>);

/** A state or a step's value that is stored apart, in parts; the entry's own is then `{}` or `null`. */
export interface ContentRef {
  /** {@link contentId} names the parts after it. */
  key: string;
  parts: number;
  /** SHA-256 of the whole text. */
  digest: string;
  /** Of a checkpoint with large metadata: the text is `{state, metadata}`, and the entry's own metadata are `{}` too. */
  metadata?: true | undefined;
}

/** What the server may still hold of the time before a deletion. */
export interface Garbage {
  /** Runs of the thread, with the segments that they have sealed and the contents these refer to. */
  runs: string[];
  contents: ContentRef[];
}

/** A sealed segment, as the thread's index knows it. */
export interface SegmentRef {
  /** The thread's run that sealed it; {@link segmentId} names the segment after it. */
  run: string;
  /** The {@link entryMark} of each entry, in their order, without separators. */
  marks: string;
  checkpoints: number;
  steps: number;
}

/** Input of the thread's workflow: empty at first, and what one run hands to the next. */
export interface ThreadInput {
  threadId: string;
  /** How often the thread was deleted. What was written under another number is late, and refused. */
  epoch: number;
  /** Oldest first. */
  segments: SegmentRef[];
  /** Oldest first. */
  entries: ThreadEntry[];
  garbage: Garbage;
}

/** Input of a segment's workflow. */
export interface SegmentInput {
  threadId: string;
  epoch: number;
  entries: ThreadEntry[];
}

/** A `put`, as it is sent. */
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

/** Checks a {@link ContentRef}. */
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

/** Stored, now or before; or an entry of this id is in a segment, and the caller must compare. */
export type ThreadPutResult = { created_at: string } | { segment: string };

/** A step, as it is sent. */
export interface ThreadPutStep {
  epoch: number;
  key: string;
  value: JsonValue;
  content?: ContentRef | undefined;
}

/** Stored; and what the value before it was stored apart as, which nobody refers to any more. */
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

/** Writes that are sent together, to be applied in their order, each for itself. */
export interface ThreadWrites {
  writes: ({ put: ThreadPut } | { step: ThreadPutStep })[];
}

/** Checks {@link ThreadWrites}. */
export const threadWritesSchema: LazySchema<ThreadWrites> = lazySchema(() =>
  z.object({
    writes: z.array(
      z.union([z.object({ put: threadPutSchema() }), z.object({ step: threadPutStepSchema() })]),
    ),
  }),
);

/** What became of one of several writes. */
export type ThreadWriteResult =
  | ThreadPutResult
  | ThreadPutStepResult
  | { refused: { code: ErrorCode; message: string } };

/** Checks what was cleared away. */
export const garbageSchema: LazySchema<Garbage> = lazySchema(() =>
  z.object({
    runs: z.array(z.string()),
    contents: z.array(contentSchema()),
  }),
);

/** Where an entry is: here, or in the segment of this run. */
export type Found = { entry: ThreadEntry } | { segment: string } | null;

/** The entry of an id or key; with `id: null` the latest checkpoint. */
export interface FindInput {
  kind: ThreadEntry['kind'];
  id: string | null;
}

/** Which checkpoints before one (default: all), newest first. */
export interface PageQuery {
  before: string | null;
  limit: number;
}

/** Checkpoints of the thread's own run, and the segments to go on in, newest first; `null` when `before` is unknown. */
export type PageResult = { entries: ThreadEntry[]; segments: string[] } | null;

/** The steps of the thread's own run, and the segments with older ones, newest first. */
export interface StepsResult {
  entries: ThreadEntry[];
  segments: string[];
}

/** What a deletion has to clear away, and the {@link ThreadInput.epoch} that it ended. */
export interface DeleteResult extends Garbage {
  epoch: number;
}

/** The names of the thread's updates and queries; the workflows' types are in `WORKFLOW`. */
export const THREAD_UPDATE = {
  put: 'put',
  putStep: 'putStep',
  writes: 'writes',
  delete: 'delete',
  swept: 'swept',
} as const;
export const THREAD_QUERY = { find: 'find', page: 'page', steps: 'steps' } as const;
/** The failure of a write for which there is no room until the run has sealed what it holds: it may be sent again. */
export const THREAD_BUSY = 'THREAD_BUSY';
/** The failure of a deletion of a thread that holds nothing: there is nothing to do. */
export const THREAD_EMPTY = 'THREAD_EMPTY';
/** The memo that shows a thread's {@link ThreadInput.epoch} without a worker. */
export const THREAD_MEMO = 'perdureEpoch';

/** Limits of threads, in bytes of JSON unless the name says otherwise. What is larger is refused, never cut. */
export const THREAD_LIMIT = {
  /** One checkpoint's state, or one step's value. */
  state: 20_000_000,
  /** What is larger is stored apart: the sandbox of workflows is slow to read and write large values. */
  inline: 32_000,
  /** Characters of one part of what is stored apart. */
  part: 500_000,
  /** One checkpoint without its state. */
  entry: 380_000,
  /**
   * One write, and what is larger is stored apart with its metadata. A server hands ten to a workflow task at once: its
   * completion repeats them all, also those that it refuses, beside what it seals or hands on ({@link held}), in 4 MB.
   */
  write: 200_000,
  /** Bytes and number of writes from which on they are no longer sent together. */
  togetherBytes: 100_000,
  together: 50,
  /** Bytes and entries from which a run seals what it holds. */
  sealBytes: 400_000,
  sealEntries: 250,
  /**
   * What one run may hold, sealed or not, and what it may hand to the next together with the index: each must fit into
   * a workflow's input, and what is held into a query's answer.
   */
  held: 1_750_000,
  /** The index of the sealed segments: it travels from run to run. About 60,000 entries. */
  index: 800_000,
} as const;

/** The error of a write to a thread whose index has no room for more. */
export function threadFull(threadId: string, size: number): PerdureError {
  const limit = THREAD_LIMIT.index;
  return new PerdureError(
    'TOO_LARGE',
    `Thread ${threadId} is full: its index is ${size} bytes of JSON, the limit is ${limit}, which is about 60,000 checkpoints and steps. It keeps all that it has, and takes nothing new. Write to another thread, or delete this one to begin it anew.`,
    { details: { field: 'index of the thread', size, limit } },
  );
}

const MARK_LENGTH = 12;

/** A short mark of an entry: unlikely to be another's, so what it finds is looked at before it is believed. */
export function entryMark(kind: ThreadEntry['kind'], id: string): string {
  return sha256Hex(`${kind}:${id}`).slice(0, MARK_LENGTH);
}

/** Whether a segment may hold the entry of a mark. */
export function hasMark({ marks }: SegmentRef, mark: string): boolean {
  for (let at = marks.indexOf(mark); at >= 0; at = marks.indexOf(mark, at + 1)) {
    if (at % MARK_LENGTH === 0) return true;
  }
  return false;
}

/** Whether two puts of one id are the same put. */
export function samePut(a: Omit<ThreadPut, 'epoch' | 'id'>, b: Omit<ThreadPut, 'epoch' | 'id'>): boolean {
  const text = ({ state, parent_id, metadata, content: apart }: typeof a): string =>
    canonicalJson({ state, parent_id, metadata, digest: apart?.digest ?? null });
  return a.content?.metadata === b.content?.metadata && text(a) === text(b);
}

/** The id or key of an entry. */
export function entryId(entry: ThreadEntry): string {
  return entry.kind === 'checkpoint' ? entry.id : entry.key;
}

/** Characters of a thread id up to which its workflow is named after it: some servers store 255. */
const READABLE = 200;

/** The id of a thread's workflow. A long thread id is shortened to its beginning and a digest. */
export function threadWorkflowId(threadId: string): string {
  if (threadId.length <= READABLE) return `perdure-thread/${threadId}`;
  // A character of two units may have been cut in half.
  const beginning = threadId.slice(0, READABLE - 60).replace(/\p{Surrogate}/u, '');
  return `perdure-thread/${beginning}~${sha256Hex(threadId)}`;
}

/** The id of the workflow that holds one part of a state. */
export function contentId(key: string, part: number): string {
  return `perdure-content/${key}/${part}`;
}

/** The id of the workflow of the segment that a thread's run has sealed. */
export function segmentId(run: string): string {
  return `perdure-segment/${run}`;
}
