/** Threads that are not sessions: one workflow each, written with updates and read with queries. */

import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { LRUCache } from 'lru-cache';
import type { Checkpoint, StoredStep } from '../contract/checkpoint.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { copyJson, type JsonObject } from '../contract/json.ts';
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
  segmentId,
  THREAD_EMPTY,
  THREAD_QUERY,
  THREAD_UPDATE,
  type ThreadEntry,
  type ThreadInput,
  threadWorkflowId,
} from '../contract/thread.ts';
import { threadError } from '../temporal/errors.ts';
import { deleteRun, findExecution, reading, runsUpTo } from '../temporal/executions.ts';
import { readStartInput } from '../temporal/index.ts';
import { inChunks } from '../temporal/store-content.ts';
import { explained } from '../temporal/unanswered.ts';
import type { Waiting } from './batches.ts';
import { byKey } from './memory-saver.ts';
import { Slots } from './slots.ts';
import { ContentStore } from './thread-content.ts';
import { type ThreadWorkflow, threadStart } from './thread-start.ts';
import { refusalOf, type ThreadWrite, ThreadWriter, type Written } from './thread-writes.ts';

/** Paging through a thread reads each segment many times. */
const SEGMENT_CACHE_SIZE = 4;
/** Requests of one saver at the same time. More would time out while they wait. */
const AT_ONCE = 20;
const NOTHING: Garbage = { runs: [], contents: [] };

/** Stores and reads the entries of threads. The caller serialises the writes of one thread. */
export class ThreadStore {
  readonly #client: Client;
  readonly #options: { taskQueue: string; timeoutMs: number };
  readonly #slots = new Slots(AT_ONCE);
  readonly #segments = new LRUCache<string, ThreadEntry[]>({ max: SEGMENT_CACHE_SIZE });
  readonly #contents: ContentStore;
  readonly #writer: ThreadWriter;

  constructor(client: Client, options: { taskQueue: string; timeoutMs: number }) {
    this.#client = client;
    this.#options = options;
    this.#contents = new ContentStore(client, options.taskQueue);
    this.#writer = new ThreadWriter(client, {
      taskQueue: options.taskQueue,
      contents: this.#contents,
      answered: (threadId, call) => this.#answered(threadId, call),
      stored: (threadId, segment, id) => this.#resolve(threadId, { segment }, { kind: 'checkpoint', id }),
    });
  }

  write(threadId: string, batch: readonly Waiting<ThreadWrite, Written>[]): Promise<void> {
    return this.#writer.write(threadId, batch);
  }

  /** Whether this client has recently written to the thread. If so, it cannot be a session. */
  knows(threadId: string): boolean {
    return this.#writer.knows(threadId);
  }

  async get(threadId: string, id: string | null): Promise<Checkpoint | null> {
    return consistent(async () => {
      const entry = await this.#find(threadId, { kind: 'checkpoint', id });
      return entry?.kind === 'checkpoint' ? this.#checkpoint(threadId, entry) : null;
    });
  }

  async getStep(threadId: string, key: string): Promise<StoredStep | null> {
    return consistent(async () => {
      const entry = await this.#find(threadId, { kind: 'step', id: key });
      return entry?.kind === 'step' ? this.#step(threadId, entry) : null;
    });
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
      const found = await this.#query<StepsResult, null>(threadId, THREAD_QUERY.steps, null);
      const newest = new Map<string, Held<'step'>>();
      const take = (entries: readonly ThreadEntry[]): void => {
        for (const entry of entries) {
          if (entry.kind === 'step' && !newest.has(entry.key)) newest.set(entry.key, entry);
        }
      };
      take(found?.entries ?? []);
      for (const run of found?.segments ?? []) take((await this.#segment(threadId, run)).toReversed());
      const whole: StoredStep[] = [];
      const steps = [...newest.values()].sort(byKey);
      await inChunks([...steps.entries()], async ([place, entry]) => {
        // The step was overwritten in the meantime: read it again.
        whole[place] = await this.#step(threadId, entry).catch(async (error: unknown) => {
          if (!isPerdureError(error, 'CHECKPOINT_CORRUPTION')) throw error;
          const newer = await this.getStep(threadId, entry.key);
          if (newer === null) throw error;
          return newer;
        });
      });
      return whole;
    });
  }

  /**
   * Empties the thread, then deletes the runs and segments that held its entries. The next deletion resumes an
   * interrupted one.
   */
  async delete(threadId: string): Promise<void> {
    this.#writer.forget(threadId);
    const workflowId = threadWorkflowId(threadId);
    const thread = await findExecution(this.#client, workflowId);
    if (thread === null) return;
    if (thread.completed) return deleteRun(this.#client, workflowId, thread.runId);
    if (!thread.running) await this.#beginEmpty(threadId, thread.runId);
    const handle = this.#client.workflow.getHandle(workflowId);
    const send = <T>(name: string, garbage: Garbage): Promise<T> =>
      this.#answered(threadId, () => handle.executeUpdate<T, [Garbage]>(name, { args: [garbage] }));
    const result = await send<DeleteResult>(THREAD_UPDATE.delete, NOTHING).catch((error: unknown) => {
      if (refusalOf(error) === THREAD_EMPTY) return null;
      throw error;
    });
    if (result === null || result.runs.length === 0) return;
    const { epoch, ...garbage } = result;
    await this.#contents.delete(garbage.contents);
    await inChunks(garbage.runs, (run) => this.#deleteRun(workflowId, run));
    await this.#contents.deleteStrays(threadId, epoch);
    await send(THREAD_UPDATE.swept, garbage);
  }

  /** Restarts a thread whose run was ended from outside. The new run is empty and lists what must be deleted. */
  async #beginEmpty(threadId: string, ended: string): Promise<void> {
    const workflowId = threadWorkflowId(threadId);
    const input = (await readStartInput(this.#client, workflowId)) as ThreadInput | null;
    if (input === null) return;
    const epoch = input.epoch + 1;
    const contents = input.entries.flatMap(({ content }) => content ?? []);
    const garbage = {
      runs: [...input.garbage.runs, ...input.segments.map(({ run }) => run), ended],
      contents: [...input.garbage.contents, ...contents],
    };
    const empty: ThreadInput = { threadId, epoch, segments: [], entries: [], garbage };
    await this.#client.workflow.start<ThreadWorkflow>(
      WORKFLOW.thread,
      threadStart(empty, this.#options.taskQueue),
    );
  }

  /** Deletes the contents of a run's segment, then the segment, then the run. */
  async #deleteRun(workflowId: string, run: string): Promise<void> {
    const segment = await findExecution(this.#client, segmentId(run));
    if (segment !== null) {
      const input = (await readStartInput(this.#client, segment.workflowId)) as SegmentInput | null;
      await this.#contents.delete((input?.entries ?? []).flatMap(({ content }) => content ?? []));
      // The newest run names the others, so it goes last.
      for (const one of await runsUpTo(this.#client, segment.workflowId, segment.runId))
        await deleteRun(this.#client, segment.workflowId, one);
    }
    await deleteRun(this.#client, workflowId, run);
  }

  async #checkpoint(threadId: string, entry: Held<'checkpoint'>): Promise<Checkpoint> {
    const { id, created_at, parent_id, metadata, content } = entry;
    const apart = content === undefined ? null : await reading(threadId, () => this.#contents.load(content));
    const whole =
      content?.metadata === true
        ? (apart as Pick<Checkpoint, 'state' | 'metadata'>)
        : { state: (apart as JsonObject | null) ?? copyJson(entry.state), metadata: copyJson(metadata) };
    return { id, thread_id: threadId, created_at, state: whole.state, parent_id, metadata: whole.metadata };
  }

  async #step(threadId: string, { key, value, updated_at, content }: Held<'step'>): Promise<StoredStep> {
    const whole =
      content === undefined ? copyJson(value) : await reading(threadId, () => this.#contents.load(content));
    return { thread_id: threadId, key, value: whole, updated_at };
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

  /** The entries of a segment. They are shared: copy them before you return them. */
  async #segment(threadId: string, run: string): Promise<ThreadEntry[]> {
    const known = this.#segments.get(run);
    if (known !== undefined) return known;
    const input = (await reading(threadId, () =>
      readStartInput(this.#client, segmentId(run)),
    )) as SegmentInput | null;
    if (input === null) {
      throw new PerdureError(
        'CHECKPOINT_CORRUPTION',
        `Thread ${threadId} has lost a segment: the workflow ${segmentId(run)} does not exist`,
        { details: { segment: segmentId(run) } },
      );
    }
    this.#segments.set(run, input.entries);
    return input.entries;
  }

  async #query<T, Input>(threadId: string, name: string, input: Input): Promise<T | null> {
    const handle = this.#client.workflow.getHandle(threadWorkflowId(threadId));
    return this.#answered(threadId, () =>
      handle.query<T, [Input]>(name, input).catch((error: unknown) => {
        if (error instanceof WorkflowNotFoundError) return null;
        throw error;
      }),
    );
  }

  /**
   * Runs a call when a slot is free. The time-out begins then: many threads at once take longer, but do not time out.
   */
  async #answered<T>(threadId: string, call: () => Promise<T>): Promise<T> {
    let askedMs = 0;
    try {
      return await this.#slots.run(() => {
        askedMs = Date.now();
        return this.#client.withDeadline(askedMs + this.#options.timeoutMs, call);
      });
    } catch (error) {
      const asked = { workflowId: threadWorkflowId(threadId), what: `thread ${threadId}`, askedMs };
      throw await explained(this.#client, asked, threadError(threadId, error));
    }
  }
}

/**
 * Repeats a read that a deletion or an overwritten step has disturbed. Content that is missing a second time is lost.
 */
async function consistent<T>(read: () => Promise<T>): Promise<T> {
  const gone = new Set<string>();
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!isPerdureError(error, 'CHECKPOINT_CORRUPTION')) throw error;
      const what = JSON.stringify(error.details);
      if (gone.has(what)) throw error;
      gone.add(what);
    }
  }
}

type Held<Kind> = Extract<ThreadEntry, { kind: Kind }>;

function isCheckpoint(entry: ThreadEntry): entry is Held<'checkpoint'> {
  return entry.kind === 'checkpoint';
}
