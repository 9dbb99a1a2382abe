/** Writing to threads that are no session: as few updates as the writes that wait fit into. */

import { randomUUID } from 'node:crypto';
import { type Client, WithStartWorkflowOperation } from '@temporalio/client';
import { LRUCache } from 'lru-cache';
import type { Checkpoint, StoredStep } from '../contract/checkpoint.ts';
import { isPerdureError, isUnanswered, PerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonValue, jsonSize, utf8Length } from '../contract/json.ts';
import { assertSize, tooLarge } from '../contract/limits.ts';
import { WORKFLOW } from '../contract/names.ts';
import {
  type ContentRef,
  samePut,
  THREAD_BUSY,
  THREAD_LIMIT,
  THREAD_MEMO,
  THREAD_UPDATE,
  type ThreadEntry,
  type ThreadInput,
  type ThreadPut,
  type ThreadPutStep,
  type ThreadWriteResult,
  type ThreadWrites,
  threadWorkflowId,
} from '../contract/thread.ts';
import { type Execution, findExecution, reading } from '../temporal/executions.ts';
import { readStartInput } from '../temporal/index.ts';
import { inChunks } from '../temporal/store-content.ts';
import { type CheckedPut, idTaken } from '../thread/checks.ts';
import type { Waiting } from './batches.ts';
import type { Content, ContentStore } from './thread-content.ts';
import { type ThreadWorkflow, threadStart } from './thread-start.ts';

/** Pause before a write is sent again for which there was no room yet. */
const BUSY_PAUSE_MS = 20;
/** How long a thread may take to seal what it holds. */
const BUSY_MS = 30_000;
/** Threads of which is remembered what this client knows. */
const THREADS_AT_HAND = 10_000;
/** A thread that is deleted stays for a day: so long its id cannot become a session's. This is well below. */
const KNOWN_MS = 3_600_000;
/** Codes with which a thread refuses a write: nothing of it is stored, now or before. */
const REFUSALS = ['CONFLICT', 'INVALID_ARGUMENT', 'TOO_LARGE'] as const;
/** Room in an entry for what is written beside its content. */
const ENVELOPE = 200;

/** A write that was asked for. */
export type ThreadWrite = { put: CheckedPut } | { step: Pick<StoredStep, 'key'> & { value: JsonValue } };
/** What a write returns to its caller. */
export type Written = Checkpoint | StoredStep;
type Asked = Waiting<ThreadWrite, Written>;

/** A write as it goes over the wire, and how its answer is read. */
interface Prepared {
  asked: Asked;
  write: ThreadWrites['writes'][number];
  size: number;
  /** Its record id or its key. */
  id: string;
  read: (result: ThreadWriteResult) => Promise<Written>;
  content: ContentRef | undefined;
}

/** What a writer needs of the store around it. */
interface WriterNeeds {
  taskQueue: string;
  contents: ContentStore;
  /** Sends a request, with a time for its answer. */
  answered: <T>(threadId: string, call: () => Promise<T>) => Promise<T>;
  /** Reads a checkpoint of a segment. */
  stored: (threadId: string, segment: string, id: string) => Promise<ThreadEntry | null>;
}

/** Sends the writes of threads. Its caller lets the batches of one thread go one after the other. */
export class ThreadWriter {
  readonly #client: Client;
  readonly #needs: WriterNeeds;
  /** When a thread was certainly there. */
  readonly #seenAt = new LRUCache<string, number>({ max: THREADS_AT_HAND });

  constructor(client: Client, needs: WriterNeeds) {
    this.#client = client;
    this.#needs = needs;
  }

  /** Whether this client has lately written to the thread: then it is one, and no session. */
  knows(threadId: string): boolean {
    const seenAt = this.#seenAt.get(threadId);
    return seenAt !== undefined && performance.now() - seenAt < KNOWN_MS;
  }

  forget(threadId: string): void {
    this.#seenAt.delete(threadId);
  }

  /** Sends writes in their order, and settles each of them. */
  async write(threadId: string, batch: readonly Asked[]): Promise<void> {
    const epoch = await this.#epoch(threadId);
    const prepared: Prepared[] = [];
    await inChunks([...batch.entries()], async ([place, asked]) => {
      try {
        const { item } = asked;
        prepared[place] =
          'put' in item
            ? await this.#preparePut(asked, item.put, epoch)
            : await this.#prepareStep(asked, threadId, item.step, epoch);
      } catch (error) {
        asked.reject(error);
      }
    });
    // A place stays empty where a write was refused before it was sent.
    const ready = prepared.filter(() => true);
    for (const group of groups(ready)) await this.#send(threadId, epoch, group);
  }

  async #preparePut(asked: Asked, checked: CheckedPut, epoch: number): Promise<Prepared> {
    const { threadId, state, parentId, metadata } = checked;
    const id = checked.id ?? randomUUID();
    const own = canonicalJson(state);
    const apart = isApart('state', own);
    const put: ThreadPut = { epoch, id, state: apart ? {} : state, parent_id: parentId, metadata };
    const size = assertEntry('metadata', put);
    const isLarge = size > THREAD_LIMIT.write;
    if (apart || isLarge) {
      const text = isLarge ? canonicalJson({ state, metadata }) : own;
      // A put that is repeated finds what is there.
      const of = { id, parent_id: parentId, metadata: isLarge ? null : metadata };
      put.content = await this.#apart(threadId, { epoch, of, text, what: `checkpoint ${id}` }, id);
      if (isLarge) {
        put.state = {};
        put.metadata = {};
        put.content.metadata = true;
      }
    }
    const checkpoint = { id, thread_id: threadId, created_at: '', state, parent_id: parentId, metadata };
    const read = async (result: ThreadWriteResult): Promise<Checkpoint> => {
      if ('created_at' in result) return { ...checkpoint, created_at: result.created_at };
      const known = 'segment' in result ? await this.#needs.stored(threadId, result.segment, id) : null;
      if (known?.kind !== 'checkpoint' || !samePut(known, put)) throw idTaken(threadId, id);
      return { ...checkpoint, created_at: known.created_at };
    };
    return { asked, write: { put }, size: jsonSize(put) + ENVELOPE, id, read, content: put.content };
  }

  async #prepareStep(
    asked: Asked,
    threadId: string,
    { key, value }: Extract<ThreadWrite, { step: unknown }>['step'],
    epoch: number,
  ): Promise<Prepared> {
    const text = canonicalJson(value);
    const apart = isApart('value', text);
    const step: ThreadPutStep = { epoch, key, value: apart ? null : value };
    const size = assertEntry('key', step);
    // Its own each time: what a later write of this key replaces may be cleared away.
    const of = { key, write: randomUUID() };
    if (apart) step.content = await this.#apart(threadId, { epoch, of, text, what: `step ${key}` }, key);
    const read = async (result: ThreadWriteResult): Promise<StoredStep> => {
      if (!('updated_at' in result)) throw new Error('an answer of another kind');
      // What cannot be cleared away now goes with the thread.
      if (result.replaced !== undefined)
        await this.#needs.contents.delete([result.replaced]).catch(() => undefined);
      return { thread_id: threadId, key, value, updated_at: result.updated_at };
    };
    return { asked, write: { step }, size, id: key, read, content: step.content };
  }

  async #apart(threadId: string, content: Content, id: string): Promise<ContentRef> {
    try {
      return await this.#needs.answered(threadId, () => this.#needs.contents.store(threadId, content));
    } catch (error) {
      throw withId(error, id);
    }
  }

  async #send(threadId: string, epoch: number, group: readonly Prepared[]): Promise<void> {
    let results: ThreadWriteResult[];
    try {
      results = await this.#update(threadId, epoch, group);
    } catch (error) {
      for (const one of group) await this.#fail(threadId, one, error);
      return;
    }
    this.#seenAt.set(threadId, performance.now());
    await inChunks([...group.entries()], async ([place, one]) => {
      try {
        const result = results[place];
        if (result === undefined) throw new Error('fewer answers than writes');
        if ('refused' in result) throw new PerdureError(result.refused.code, result.refused.message);
        one.asked.resolve(await one.read(result));
      } catch (error) {
        await this.#fail(threadId, one, error);
      }
    });
  }

  async #fail(threadId: string, { asked, content, id }: Prepared, error: unknown): Promise<void> {
    // What this client knew of the thread is of no use any more.
    if (isPerdureError(error, 'CONFLICT')) this.forget(threadId);
    // Refused: what was stored for it is nobody's, for an equal put would not have been refused.
    const refused = REFUSALS.some((code) => isPerdureError(error, code));
    if (refused && content !== undefined) await this.#needs.contents.delete([content]).catch(() => undefined);
    asked.reject(withId(error, id));
  }

  /** One write goes by itself, to be refused before it is recorded. */
  async #update(threadId: string, epoch: number, group: readonly Prepared[]): Promise<ThreadWriteResult[]> {
    const [only] = group;
    if (only === undefined || group.length > 1) {
      const writes = group.map(({ write }) => write);
      return this.#repeated(threadId, epoch, THREAD_UPDATE.writes, { writes } satisfies ThreadWrites);
    }
    const { write } = only;
    return [
      'put' in write
        ? await this.#repeated<ThreadWriteResult>(threadId, epoch, THREAD_UPDATE.put, write.put)
        : await this.#repeated<ThreadWriteResult>(threadId, epoch, THREAD_UPDATE.putStep, write.step),
    ];
  }

  /** Sends an update; again while the thread is sealing what it holds. */
  async #repeated<T>(threadId: string, epoch: number, name: string, input: unknown): Promise<T> {
    const empty: ThreadInput = {
      threadId,
      epoch,
      segments: [],
      entries: [],
      garbage: { runs: [], contents: [] },
    };
    const start = threadStart(empty, this.#needs.taskQueue);
    const giveUp = performance.now() + BUSY_MS;
    for (;;) {
      try {
        return await this.#needs.answered(threadId, () =>
          this.#client.workflow.executeUpdateWithStart<ThreadWorkflow, T, [unknown]>(name, {
            args: [input],
            startWorkflowOperation: new WithStartWorkflowOperation<ThreadWorkflow>(WORKFLOW.thread, start),
          }),
        );
      } catch (error) {
        if (!isBusy(error) || performance.now() > giveUp) throw error;
        await new Promise((resolve) => setTimeout(resolve, BUSY_PAUSE_MS));
      }
    }
  }

  /**
   * How often the thread was deleted before these writes: they belong to that time. Asked each time, for another client
   * may have deleted it since, and what begins after that begins the thread anew.
   */
  async #epoch(threadId: string): Promise<number> {
    return reading(threadId, async () => {
      const thread = await findExecution(this.#client, threadWorkflowId(threadId));
      if (thread === null) return 0;
      if (!thread.running && !thread.completed) throw endedFromOutside(threadId);
      return epochOf(this.#client, thread);
    });
  }
}

/** How often a thread was deleted. Its first run may have been begun by a client that noted it nowhere but in the input. */
async function epochOf(client: Client, { workflowId, memo }: Execution): Promise<number> {
  const noted = await memo(THREAD_MEMO);
  if (noted !== undefined) return Number(noted);
  return ((await readStartInput(client, workflowId)) as ThreadInput | null)?.epoch ?? 0;
}

function endedFromOutside(threadId: string): PerdureError {
  const workflowId = threadWorkflowId(threadId);
  return new PerdureError(
    'CHECKPOINT_CORRUPTION',
    `The workflow of thread ${threadId}, ${workflowId}, was ended from outside. What it held can be read until its namespace's retention removes it, and it takes nothing new: a write would begin an empty thread that hides it. Delete the thread to begin it anew.`,
    { details: { workflowId } },
  );
}

/** Writes that fit into one update each. */
function groups(writes: readonly Prepared[]): Prepared[][] {
  const found: Prepared[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const write of writes) {
    const last = found.at(-1);
    bytes += write.size;
    if (last === undefined || bytes > THREAD_LIMIT.togetherBytes || last.length >= THREAD_LIMIT.together) {
      found.push([write]);
      bytes = write.size;
    } else last.push(write);
  }
  return found;
}

/** Whether a value is stored apart. @throws PerdureError `TOO_LARGE` when it is not stored at all */
function isApart(field: string, text: string): boolean {
  const size = utf8Length(text);
  if (size > THREAD_LIMIT.state) throw tooLarge(field, size, THREAD_LIMIT.state);
  return size > THREAD_LIMIT.inline;
}

function assertEntry(field: string, entry: ThreadPut | ThreadPutStep): number {
  assertSize(field, entry, THREAD_LIMIT.entry - ENVELOPE);
  return jsonSize(entry) + ENVELOPE;
}

function isBusy(error: unknown): boolean {
  return refusalOf(error) === THREAD_BUSY;
}

/** Why a thread has refused an update that it may be given again, or that it has nothing to do for. */
export function refusalOf(error: unknown): unknown {
  const { cause } = (error ?? {}) as { cause?: { type?: unknown } };
  return cause?.type;
}

/** A write whose answer was lost may be repeated under its id: say it. */
function withId(error: unknown, id: string): unknown {
  if (!isUnanswered(error) && !isPerdureError(error, 'SERVER_UNAVAILABLE')) return error;
  return new PerdureError(error.code, error.message, { details: { ...error.details, id }, cause: error });
}
