/** Writes to threads that are not sessions, in as few updates as possible. */

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

/** Pause before a write is sent again to a thread that is sealing. */
const BUSY_PAUSE_MS = 20;
const BUSY_MS = 30_000;
const CACHE_SIZE = 10_000;
/** A deleted thread's workflow stays for a day. Until then, its id cannot become a session's. */
const KNOWN_MS = 3_600_000;
/** Error codes of a refused write. Nothing of such a write is stored. */
const REFUSALS = ['CONFLICT', 'INVALID_ARGUMENT', 'TOO_LARGE'] as const;
/** Bytes of an entry beside its content. */
const ENVELOPE = 200;

export type ThreadWrite = { put: CheckedPut } | { step: Pick<StoredStep, 'key'> & { value: JsonValue } };
export type Written = Checkpoint | StoredStep;
type Asked = Waiting<ThreadWrite, Written>;

/** A write as it is sent, and how its answer is read. */
interface Prepared {
  asked: Asked;
  write: ThreadWrites['writes'][number];
  size: number;
  id: string;
  read: (result: ThreadWriteResult) => Promise<Written>;
  content: ContentRef | undefined;
}

interface WriterNeeds {
  taskQueue: string;
  contents: ContentStore;
  answered: <T>(threadId: string, call: () => Promise<T>) => Promise<T>;
  stored: (threadId: string, segment: string, id: string) => Promise<ThreadEntry | null>;
}

/** Sends the writes of threads. The caller serialises the batches of one thread. */
export class ThreadWriter {
  readonly #client: Client;
  readonly #needs: WriterNeeds;
  readonly #seenAt = new LRUCache<string, number>({ max: CACHE_SIZE });

  constructor(client: Client, needs: WriterNeeds) {
    this.#client = client;
    this.#needs = needs;
  }

  /** Whether this client has recently written to the thread. If so, it cannot be a session. */
  knows(threadId: string): boolean {
    const seenAt = this.#seenAt.get(threadId);
    return seenAt !== undefined && performance.now() - seenAt < KNOWN_MS;
  }

  forget(threadId: string): void {
    this.#seenAt.delete(threadId);
  }

  /** Sends writes in their order, and settles each. */
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
    // Refused writes leave holes in the array.
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
      // A repeated put finds the same content.
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
    // Unique, so that deleting a replaced value never deletes the value of another write.
    const of = { key, write: randomUUID() };
    if (apart) step.content = await this.#apart(threadId, { epoch, of, text, what: `step ${key}` }, key);
    const read = async (result: ThreadWriteResult): Promise<StoredStep> => {
      if (!('updated_at' in result)) throw new Error('an answer of another kind');
      // A content that cannot be deleted now is deleted with the thread.
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
    if (isPerdureError(error, 'CONFLICT')) this.forget(threadId);
    // The content of a refused write has no owner: an equal put would have been accepted.
    const refused = REFUSALS.some((code) => isPerdureError(error, code));
    if (refused && content !== undefined) await this.#needs.contents.delete([content]).catch(() => undefined);
    asked.reject(withId(error, id));
  }

  /** Sends a single write as an update of its own: its validator can refuse it before it is recorded. */
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

  /** Sends an update. Repeats it while the thread is sealing. */
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
   * How often the thread was deleted before these writes. Read each time, because another client may have deleted it.
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

/** A thread's epoch: in the memo, or in the input of its first run. */
async function epochOf(client: Client, { workflowId, memo }: Execution): Promise<number> {
  const noted = await memo(THREAD_MEMO);
  if (noted !== undefined) return Number(noted);
  return ((await readStartInput(client, workflowId)) as ThreadInput | null)?.epoch ?? 0;
}

function endedFromOutside(threadId: string): PerdureError {
  const workflowId = threadWorkflowId(threadId);
  return new PerdureError(
    'CHECKPOINT_CORRUPTION',
    `The workflow of thread ${threadId}, ${workflowId}, was ended from outside. It can be read until the retention of its namespace ends, but not written: a write would start an empty thread that hides it. Delete the thread to start it anew.`,
    { details: { workflowId } },
  );
}

/** Splits writes into updates. */
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

/** Whether a value is stored apart. @throws PerdureError `TOO_LARGE` */
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

/** The error type of an update that a thread has refused. */
export function refusalOf(error: unknown): unknown {
  const { cause } = (error ?? {}) as { cause?: { type?: unknown } };
  return cause?.type;
}

/** Adds the id under which an unanswered write can be repeated. */
function withId(error: unknown, id: string): unknown {
  if (!isUnanswered(error) && !isPerdureError(error, 'SERVER_UNAVAILABLE')) return error;
  return new PerdureError(error.code, error.message, { details: { ...error.details, id }, cause: error });
}
