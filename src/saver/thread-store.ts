/** Threads that are no session: a workflow each, written with updates and read with queries. */
import { randomUUID } from 'node:crypto';
import { type Client, WithStartWorkflowOperation, WorkflowNotFoundError } from '@temporalio/client';
import { sessionError } from '../client/errors.ts';
import { type CheckedPut, type Checkpoint, idTaken, type StoredStep } from '../contract/checkpoint.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonValue, utf8Length } from '../contract/json.ts';
import { assertSize, tooLarge } from '../contract/limits.ts';
import { WORKFLOW } from '../contract/names.ts';
import {
  type DeleteResult,
  entryId,
  type FindInput,
  type Found,
  type Garbage,
  type PageQuery,
  type PageResult,
  type SegmentInput,
  type StepsResult,
  samePut,
  segmentId,
  THREAD_BUSY,
  THREAD_LIMIT,
  THREAD_MEMO,
  THREAD_QUERY,
  THREAD_UPDATE,
  type ThreadEntry,
  type ThreadInput,
  type ThreadPut,
  type ThreadPutResult,
  type ThreadPutStep,
  threadWorkflowId,
} from '../contract/thread.ts';
import { byKey } from './memory-saver.ts';
import { ContentStore, inChunks } from './thread-content.ts';
import { deleteRun, findExecution, readInput, reading } from './wire.ts';

/** Pause before a write is sent again for which there was no room yet. */
const BUSY_PAUSE_MS = 20;
/** Segments at hand: who pages through a thread reads each of them many times. */
const SEGMENTS_AT_HAND = 4;
/** Threads of which the epoch is remembered. */
const EPOCHS_AT_HAND = 10_000;
const NOTHING: Garbage = { runs: [], contents: [] };

/** Stores and reads the entries of threads. Its caller lets the writes of one thread go one after the other. */
export class ThreadStore {
  readonly #client: Client;
  readonly #options: { taskQueue: string; timeoutMs: number };
  readonly #epochs = new Map<string, number>();
  readonly #segments = new Map<string, ThreadEntry[]>();
  readonly #contents: ContentStore;

  constructor(client: Client, options: { taskQueue: string; timeoutMs: number }) {
    this.#client = client;
    this.#options = options;
    this.#contents = new ContentStore(client, options.taskQueue);
  }

  async put({ threadId, state, parentId, metadata, id: given }: CheckedPut): Promise<Checkpoint> {
    const id = given ?? randomUUID();
    const text = canonicalJson(state);
    const size = utf8Length(text);
    if (size > THREAD_LIMIT.state) throw tooLarge('state', size, THREAD_LIMIT.state);
    const apart = size > THREAD_LIMIT.inline;
    const put: ThreadPut = { epoch: 0, id, state: apart ? {} : state, parent_id: parentId, metadata };
    assertSize('metadata', put, THREAD_LIMIT.entry - ENVELOPE);
    put.epoch = await this.#epoch(threadId);
    if (apart) put.content = await this.#answered(threadId, () => this.#contents.store(threadId, put, text));
    const checkpoint = { id, thread_id: threadId, created_at: '', state, parent_id: parentId, metadata };
    try {
      const result = await this.#write<ThreadPutResult>(threadId, THREAD_UPDATE.put, put, id);
      if ('created_at' in result) return { ...checkpoint, created_at: result.created_at };
      const known = await this.#resolve(threadId, result, { kind: 'checkpoint', id });
      if (known?.kind !== 'checkpoint' || !samePut(known, put)) throw idTaken(threadId, id);
      return { ...checkpoint, created_at: known.created_at };
    } catch (error) {
      // Refused: what was stored for it is nobody's, for an equal put would not have been refused.
      const refused = isPerdureError(error, 'CONFLICT') || isPerdureError(error, 'INVALID_ARGUMENT');
      if (refused && put.content !== undefined) await this.#contents.delete([put.content]);
      throw error;
    }
  }

  async putStep(threadId: string, key: string, value: JsonValue): Promise<StoredStep> {
    assertSize('value', { key, value }, THREAD_LIMIT.entry - ENVELOPE);
    const step: ThreadPutStep = { epoch: await this.#epoch(threadId), key, value };
    type Stored = Pick<StoredStep, 'updated_at'>;
    const { updated_at } = await this.#write<Stored>(threadId, THREAD_UPDATE.putStep, step, key);
    return { thread_id: threadId, key, value, updated_at };
  }

  async get(threadId: string, id: string | null): Promise<Checkpoint | null> {
    return consistent(async () => {
      const entry = await this.#find(threadId, { kind: 'checkpoint', id });
      return entry?.kind === 'checkpoint' ? this.#checkpoint(threadId, entry) : null;
    });
  }

  async getStep(threadId: string, key: string): Promise<StoredStep | null> {
    const entry = await consistent(() => this.#find(threadId, { kind: 'step', id: key }));
    return entry?.kind === 'step' ? stepOf(threadId, entry) : null;
  }

  async list(threadId: string, before: string | null, limit: number): Promise<Checkpoint[]> {
    return consistent(async () => {
      const page = await this.#query<PageResult, PageQuery>(threadId, THREAD_QUERY.page, { before, limit });
      if (page === null) return [];
      const found = page.entries.filter(isCheckpoint);
      for (const run of page.segments) {
        const held = (await this.#segment(threadId, run)).filter(isCheckpoint);
        const end = before === null ? -1 : held.findIndex(({ id }) => id === before);
        found.push(...held.slice(0, end < 0 ? undefined : end).reverse());
        if (found.length >= limit) break;
      }
      const whole: Checkpoint[] = [];
      await inChunks([...found.slice(0, limit).entries()], async ([place, entry]) => {
        whole[place] = await this.#checkpoint(threadId, entry);
      });
      return whole;
    });
  }

  async listSteps(threadId: string): Promise<StoredStep[]> {
    return consistent(async () => {
      const steps = await this.#query<StepsResult, null>(threadId, THREAD_QUERY.steps, null);
      const newest = new Map<string, StoredStep>();
      const take = (entries: readonly ThreadEntry[]): void => {
        for (const entry of entries) {
          if (entry.kind === 'step' && !newest.has(entry.key)) newest.set(entry.key, stepOf(threadId, entry));
        }
      };
      take(steps?.entries ?? []);
      for (const run of steps?.segments ?? []) take((await this.#segment(threadId, run)).toReversed());
      return [...newest.values()].sort(byKey);
    });
  }

  /**
   * Forgets the thread, then has the runs and segments that held it deleted. When this is interrupted, the thread
   * is empty, and the next deletion clears away what is left.
   */
  async delete(threadId: string): Promise<void> {
    this.#epochs.delete(threadId);
    const workflowId = threadWorkflowId(threadId);
    const thread = await findExecution(this.#client, workflowId);
    if (thread === null) return;
    if (!thread.running) return deleteRun(this.#client, workflowId, thread.runId);
    const handle = this.#client.workflow.getHandle(workflowId);
    const send = <T>(name: string, garbage: Garbage): Promise<T> =>
      this.#answered(threadId, () => handle.executeUpdate<T, [Garbage]>(name, { args: [garbage] }));
    const { epoch, ...garbage } = await send<DeleteResult>(THREAD_UPDATE.delete, NOTHING);
    if (garbage.runs.length === 0) return;
    await this.#contents.delete(garbage.contents);
    await inChunks(garbage.runs, (run) => this.#deleteRun(workflowId, run));
    await this.#contents.deleteStrays(threadId, epoch);
    await send(THREAD_UPDATE.swept, garbage);
  }

  /** Deletes a run of a thread, and before it the segment that it has sealed, and before that what it refers to. */
  async #deleteRun(workflowId: string, run: string): Promise<void> {
    const segment = await findExecution(this.#client, segmentId(run));
    if (segment !== null) {
      const input = (await readInput(this.#client, segment.workflowId)) as SegmentInput | null;
      const entries = (input?.entries ?? []).filter(isCheckpoint);
      await this.#contents.delete(entries.flatMap(({ content }) => content ?? []));
      await deleteRun(this.#client, segment.workflowId, segment.runId);
    }
    await deleteRun(this.#client, workflowId, run);
  }

  /** An entry as it was put, with its state when that is stored apart. */
  async #checkpoint(threadId: string, entry: Held<'checkpoint'>): Promise<Checkpoint> {
    const { id, created_at, parent_id, metadata, content } = entry;
    const apart = content === undefined ? null : await reading(threadId, () => this.#contents.load(content));
    const state = apart ?? structuredClone(entry.state);
    return { id, thread_id: threadId, created_at, state, parent_id, metadata: structuredClone(metadata) };
  }

  async #find(threadId: string, input: FindInput): Promise<ThreadEntry | null> {
    const found = await this.#query<Found, FindInput>(threadId, THREAD_QUERY.find, input);
    return this.#resolve(threadId, found, input);
  }

  async #resolve(
    threadId: string,
    found: Found | { segment: string },
    { kind, id }: FindInput,
  ): Promise<ThreadEntry | null> {
    if (found === null) return null;
    if ('entry' in found) return found.entry;
    const entries = await this.#segment(threadId, found.segment);
    return entries.findLast((entry) => entry.kind === kind && (id === null || entryId(entry) === id)) ?? null;
  }

  /** The entries of a segment. They are shared: copy what you hand out. */
  async #segment(threadId: string, run: string): Promise<ThreadEntry[]> {
    const known = this.#segments.get(run);
    if (known !== undefined) return known;
    const input = (await reading(threadId, () =>
      readInput(this.#client, segmentId(run)),
    )) as SegmentInput | null;
    if (input === null) {
      throw new PerdureError(
        'CHECKPOINT_CORRUPTION',
        `Thread ${threadId} has lost a segment: the workflow ${segmentId(run)} is gone`,
        { details: { segment: segmentId(run) } },
      );
    }
    remember(this.#segments, run, input.entries, SEGMENTS_AT_HAND);
    return input.entries;
  }

  /** How often the thread was deleted, as far as this client knows: what it writes belongs to that time. */
  async #epoch(threadId: string): Promise<number> {
    const known = this.#epochs.get(threadId);
    if (known !== undefined) return known;
    const thread = await reading(threadId, () => findExecution(this.#client, threadWorkflowId(threadId)));
    const epoch = Number((await thread?.memo(THREAD_MEMO)) ?? 0);
    remember(this.#epochs, threadId, epoch, EPOCHS_AT_HAND);
    return epoch;
  }

  async #write<T>(threadId: string, name: string, input: ThreadPut | ThreadPutStep, id: string): Promise<T> {
    const empty: ThreadInput = { threadId, epoch: input.epoch, segments: [], entries: [], garbage: NOTHING };
    const deadline = performance.now() + this.#options.timeoutMs;
    for (;;) {
      try {
        return await this.#answered(threadId, () =>
          this.#client.workflow.executeUpdateWithStart<() => Promise<void>, T, [unknown]>(name, {
            args: [input],
            startWorkflowOperation: new WithStartWorkflowOperation(WORKFLOW.thread, {
              workflowId: threadWorkflowId(threadId),
              taskQueue: this.#options.taskQueue,
              args: [empty],
              workflowIdConflictPolicy: 'USE_EXISTING',
              workflowIdReusePolicy: 'ALLOW_DUPLICATE',
              staticSummary: `checkpoints of ${threadId}`.slice(0, 200),
            }),
          }),
        );
      } catch (error) {
        // What this client knew of the thread is of no use any more.
        if (isPerdureError(error, 'CONFLICT')) this.#epochs.delete(threadId);
        if (!isBusy(error) || performance.now() > deadline) throw withId(error, id);
        await new Promise((resolve) => setTimeout(resolve, BUSY_PAUSE_MS));
      }
    }
  }

  async #query<T, Input>(threadId: string, name: string, input: Input): Promise<T | null> {
    try {
      const handle = this.#client.workflow.getHandle(threadWorkflowId(threadId));
      return await this.#client.withDeadline(Date.now() + this.#options.timeoutMs, () =>
        handle.query<T, [Input]>(name, input),
      );
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw sessionError(threadId, error);
    }
  }

  async #answered<T>(threadId: string, call: () => Promise<T>): Promise<T> {
    try {
      return await this.#client.withDeadline(Date.now() + this.#options.timeoutMs, call);
    } catch (error) {
      throw sessionError(threadId, error);
    }
  }
}

/** A reading that meets a deletion half way finds segments gone: it then sees the thread as it is now. */
async function consistent<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!isPerdureError(error, 'CHECKPOINT_CORRUPTION')) throw error;
    return read();
  }
}

/** Room in an entry for what is written beside its content. */
const ENVELOPE = 200;

type Held<Kind> = Extract<ThreadEntry, { kind: Kind }>;

function isCheckpoint(entry: ThreadEntry): entry is Held<'checkpoint'> {
  return entry.kind === 'checkpoint';
}

function stepOf(threadId: string, entry: Held<'step'>): StoredStep {
  const { key, value, updated_at } = structuredClone(entry);
  return { thread_id: threadId, key, value, updated_at };
}

/** Keeps an entry as the newest of a few. */
function remember<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}

function isBusy(error: unknown): boolean {
  const { cause } = (error ?? {}) as { cause?: { type?: unknown } };
  return cause?.type === THREAD_BUSY;
}

/** A write whose answer was lost may be repeated under its id: say it. */
function withId(error: unknown, id: string): unknown {
  if (!isPerdureError(error, 'NO_WORKER') && !isPerdureError(error, 'SERVER_UNAVAILABLE')) return error;
  return new PerdureError(error.code, error.message, { details: { ...error.details, id }, cause: error });
}
