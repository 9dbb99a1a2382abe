/** The state of a thread's run. Pure: the workflow around it only waits and issues commands. */

import { isPerdureError } from '../contract/errors.ts';
import { jsonSize } from '../contract/json.ts';
import { tooLarge } from '../contract/limits.ts';
import {
  type DeleteResult,
  entryId,
  entryMark,
  type FindInput,
  type Found,
  type Garbage,
  hasMark,
  type PageQuery,
  type PageResult,
  type SegmentInput,
  type SegmentRef,
  type StepsResult,
  samePut,
  THREAD_LIMIT,
  type ThreadEntry,
  type ThreadInput,
  type ThreadPut,
  type ThreadPutResult,
  type ThreadPutStep,
  type ThreadPutStepResult,
  type ThreadWriteResult,
  type ThreadWrites,
  threadFull,
} from '../contract/thread.ts';
import { deletedMeanwhile, idTaken, unknownParent } from './checks.ts';

/** One run of a thread. */
export class ThreadState {
  readonly threadId: string;
  readonly epoch: number;
  readonly #segments: SegmentRef[];
  #garbage: Garbage;
  #entries: ThreadEntry[];
  /** Entries that are being sealed. Until the segment exists, they are read like the others. */
  #sealing: ThreadEntry[] = [];
  #sealingBytes = 0;
  #starting = false;
  /** A segment was begun: later entries pass to the next run, together with the index. */
  #goesOn = false;
  #bytes: number;
  #writes = 0;
  #indexBytes: number;
  /** The thread was deleted: the next run starts empty. */
  #deleted = false;

  constructor(input: ThreadInput) {
    this.threadId = input.threadId;
    this.epoch = input.epoch;
    this.#segments = input.segments;
    this.#entries = input.entries;
    this.#garbage = input.garbage;
    this.#bytes = input.entries.reduce((sum, entry) => sum + jsonSize(entry), 0);
    this.#indexBytes = jsonSize(input.segments);
  }

  get deleted(): boolean {
    return this.#deleted;
  }

  /** Whether nothing is stored and nothing is left to remove. */
  get empty(): boolean {
    return this.#nothing && this.#garbage.runs.length === 0;
  }

  /** Whether some entries are in no segment yet. */
  get holds(): boolean {
    return this.#entries.length > 0;
  }

  /** Whether a segment is being written. */
  get sealing(): boolean {
    return this.#starting;
  }

  get full(): boolean {
    return this.#bytes >= THREAD_LIMIT.sealBytes || this.#writes >= THREAD_LIMIT.sealEntries;
  }

  /** @throws PerdureError when the put is refused */
  validatePut(put: ThreadPut): void {
    this.#validate('checkpoint', put);
    const known = this.#place('checkpoint', put.id);
    if (known !== null) {
      // A repeated put. If a segment has the entry, the caller compares it.
      if ('entry' in known && known.entry.kind === 'checkpoint' && !samePut(known.entry, put))
        throw idTaken(this.threadId, put.id);
      return;
    }
    this.#validateRoom();
    if (put.parent_id !== null && this.#place('checkpoint', put.parent_id) === null)
      throw unknownParent(this.threadId, put.parent_id);
  }

  put({ id, state, parent_id, metadata, content }: ThreadPut, now: string): ThreadPutResult {
    const known = this.#held('checkpoint', id);
    if (known?.kind === 'checkpoint') return { created_at: known.created_at };
    const segment = this.#segmentOf('checkpoint', id);
    if (segment !== undefined) return { segment: segment.run };
    const entry = { kind: 'checkpoint' as const, id, created_at: now, parent_id, state, metadata };
    this.#add(content === undefined ? entry : { ...entry, content });
    return { created_at: now };
  }

  /** @throws PerdureError when the step is refused */
  validateStep(step: ThreadPutStep): void {
    this.#validate('step', step);
    this.#validateRoom();
  }

  putStep({ key, value, content }: ThreadPutStep, now: string): ThreadPutStepResult {
    const old = this.#entries.findIndex((entry) => entry.kind === 'step' && entry.key === key);
    const [replaced] = old < 0 ? [] : this.#entries.splice(old, 1);
    if (replaced !== undefined) this.#bytes -= jsonSize(replaced);
    const entry = { kind: 'step' as const, key, value, updated_at: now };
    this.#add(content === undefined ? entry : { ...entry, content });
    // A step that is repeated after a lost answer and a change of run replaces nothing.
    return replaced?.content === undefined || replaced.content.key === content?.key
      ? { updated_at: now }
      : { updated_at: now, replaced: replaced.content };
  }

  /** Applies writes that were sent together. A refused write does not fail the others. */
  writeAll({ writes }: ThreadWrites, now: string): ThreadWriteResult[] {
    return writes.map((write) => {
      try {
        if ('put' in write) {
          this.validatePut(write.put);
          return this.put(write.put, now);
        }
        this.validateStep(write.step);
        return this.putStep(write.step, now);
      } catch (error) {
        if (!isPerdureError(error)) throw error;
        return { refused: { code: error.code, message: error.message } };
      }
    });
  }

  /** Whether a write fits beside what the run holds. Otherwise it must wait for the segment. */
  hasRoom(size: number): boolean {
    const beside = this.#goesOn ? Math.max(this.#sealingBytes, this.#indexBytes) : 0;
    return beside + this.#bytes + size <= THREAD_LIMIT.held;
  }

  /** Empties the thread. Returns what must be removed because of this deletion or an earlier one. */
  delete(run: string): DeleteResult {
    if (this.#deleted || this.#nothing)
      return { ...this.#garbage, epoch: this.epoch - (this.#deleted ? 0 : 1) };
    this.#deleted = true;
    const contents = this.#all().flatMap((entry) =>
      'content' in entry && entry.content ? [entry.content] : [],
    );
    this.#garbage = {
      runs: [...this.#garbage.runs, ...this.#segments.map((segment) => segment.run), run],
      contents: [...this.#garbage.contents, ...contents],
    };
    this.#segments.length = 0;
    this.#entries = [];
    this.#sealing = [];
    return { ...this.#garbage, epoch: this.epoch };
  }

  swept({ runs, contents }: Garbage): void {
    this.#garbage = {
      runs: this.#garbage.runs.filter((run) => !runs.includes(run)),
      contents: this.#garbage.contents.filter(({ key }) => !contents.some((swept) => swept.key === key)),
    };
  }

  find({ kind, id }: FindInput): Found {
    if (id !== null) return this.#place(kind, id);
    const entry = this.#all().findLast((one) => one.kind === 'checkpoint');
    if (entry !== undefined) return { entry };
    const segment = this.#segments.findLast(({ checkpoints }) => checkpoints > 0);
    return segment === undefined ? null : { segment: segment.run };
  }

  page({ before, limit }: PageQuery): PageResult {
    const held = this.#all().filter((entry) => entry.kind === 'checkpoint');
    const end = before === null ? held.length : held.findIndex((entry) => entryId(entry) === before);
    if (end >= 0) {
      const entries = held.slice(Math.max(0, end - limit), end).reverse();
      return { entries, segments: segmentsFor(this.#segments, limit - entries.length) };
    }
    const mark = entryMark('checkpoint', before ?? '');
    const last = this.#segments.findLastIndex((segment) => hasMark(segment, mark));
    // The segment that has `before` may hold no older checkpoints, so it does not count.
    const own = this.#segments[last];
    if (own === undefined) return null;
    return { entries: [], segments: [own.run, ...segmentsFor(this.#segments.slice(0, last), limit)] };
  }

  steps(): StepsResult {
    const segments = this.#segments.filter(({ steps }) => steps > 0).reverse();
    return {
      entries: this.#all()
        .filter((entry) => entry.kind === 'step')
        .reverse(),
      segments: segments.map(({ run }) => run),
    };
  }

  /** Begins to seal the present entries. Returns the input of their segment. */
  seal(): SegmentInput {
    this.#starting = true;
    this.#goesOn = true;
    this.#sealing = this.#entries;
    this.#sealingBytes = this.#bytes;
    this.#entries = [];
    this.#bytes = 0;
    this.#writes = 0;
    return { threadId: this.threadId, epoch: this.epoch, entries: this.#sealing };
  }

  /** Ends the sealing: the segment of the run has the entries. */
  sealed(run: string): void {
    this.#starting = false;
    if (this.#deleted) return;
    const checkpoints = this.#sealing.filter(({ kind }) => kind === 'checkpoint').length;
    const marks = this.#sealing.map((entry) => entryMark(entry.kind, entryId(entry))).join('');
    this.#segments.push({ run, marks, checkpoints, steps: this.#sealing.length - checkpoints });
    this.#sealing = [];
    this.#sealingBytes = 0;
  }

  /** The input of the next run. */
  carry(): ThreadInput {
    return {
      threadId: this.threadId,
      epoch: this.epoch + (this.#deleted ? 1 : 0),
      segments: this.#segments,
      entries: [...this.#sealing, ...this.#entries],
      garbage: this.#garbage,
    };
  }

  get #nothing(): boolean {
    return this.#segments.length === 0 && this.#entries.length === 0 && this.#sealing.length === 0;
  }

  #all(): ThreadEntry[] {
    return [...this.#sealing, ...this.#entries];
  }

  #held(kind: ThreadEntry['kind'], id: string): ThreadEntry | undefined {
    return this.#all().findLast((entry) => entry.kind === kind && entryId(entry) === id);
  }

  #segmentOf(kind: ThreadEntry['kind'], id: string): SegmentRef | undefined {
    const mark = entryMark(kind, id);
    return this.#segments.findLast((segment) => hasMark(segment, mark));
  }

  #place(kind: ThreadEntry['kind'], id: string): Found {
    const entry = this.#held(kind, id);
    if (entry !== undefined) return { entry };
    const segment = this.#segmentOf(kind, id);
    return segment === undefined ? null : { segment: segment.run };
  }

  #add(entry: ThreadEntry): void {
    this.#entries.push(entry);
    this.#bytes += jsonSize(entry);
    this.#writes += 1;
  }

  #validate(kind: ThreadEntry['kind'], write: ThreadPut | ThreadPutStep): void {
    if (this.#deleted || write.epoch !== this.epoch) throw deletedMeanwhile(this.threadId);
    const size = jsonSize(write);
    if (size > THREAD_LIMIT.write) throw tooLarge(kind, size, THREAD_LIMIT.write);
  }

  #validateRoom(): void {
    if (this.#indexBytes > THREAD_LIMIT.index) throw threadFull(this.threadId, this.#indexBytes);
  }
}

/** The newest segments that together hold a number of checkpoints, newest first. */
function segmentsFor(segments: readonly SegmentRef[], count: number): string[] {
  const runs: string[] = [];
  let left = count;
  for (let i = segments.length - 1; i >= 0 && left > 0; i--) {
    const segment = segments[i];
    if (segment === undefined || segment.checkpoints === 0) continue;
    runs.push(segment.run);
    left -= segment.checkpoints;
  }
  return runs;
}
