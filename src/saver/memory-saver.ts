import { randomUUID } from 'node:crypto';
import type {
  Checkpoint,
  CheckpointSaver,
  GetOptions,
  ListOptions,
  PutOptions,
  StoredStep,
} from '../contract/checkpoint.ts';
import type { JsonObject, JsonValue } from '../contract/json.ts';
import {
  checkGet,
  checkId,
  checkList,
  checkPut,
  checkStep,
  idTaken,
  sameContent,
  unknownParent,
} from '../thread/checks.ts';

interface Thread {
  checkpoints: Checkpoint[];
  /** The index of a checkpoint, by its id. */
  places: Map<string, number>;
  steps: Map<string, StoredStep>;
}

/** Checkpoints in the memory of this process, for tests and for data that may be lost. */
export class MemorySaver implements CheckpointSaver {
  readonly #threads = new Map<string, Thread>();
  readonly #now: () => number;

  /** @param options - `now`: the clock of `created_at`, in milliseconds since 1970. Default: `Date.now`. */
  constructor(options: { now?: () => number } = {}) {
    this.#now = options.now ?? Date.now;
  }

  async put(threadId: string, state: JsonObject, options: PutOptions = {}): Promise<Checkpoint> {
    const put = checkPut(threadId, state, options);
    const known = this.#find(threadId, put.id);
    const checkpoint: Checkpoint = {
      id: put.id ?? randomUUID(),
      thread_id: threadId,
      created_at: new Date(this.#now()).toISOString(),
      state: put.state,
      parent_id: put.parentId,
      metadata: put.metadata,
    };
    if (known !== undefined) {
      if (!sameContent(known, checkpoint)) throw idTaken(threadId, known.id);
      return structuredClone(known);
    }
    if (put.parentId !== null && this.#find(threadId, put.parentId) === undefined)
      throw unknownParent(threadId, put.parentId);
    const thread = this.#open(threadId);
    thread.places.set(checkpoint.id, thread.checkpoints.push(checkpoint) - 1);
    return structuredClone(checkpoint);
  }

  async get(threadId: string, options: GetOptions = {}): Promise<Checkpoint | null> {
    const id = checkGet(threadId, options);
    const found = id === null ? this.#threads.get(threadId)?.checkpoints.at(-1) : this.#find(threadId, id);
    return structuredClone(found ?? null);
  }

  async list(threadId: string, options: ListOptions = {}): Promise<Checkpoint[]> {
    const { before, limit } = checkList(threadId, options);
    const thread = this.#threads.get(threadId);
    if (thread === undefined || limit <= 0) return [];
    const end = before === null ? thread.checkpoints.length : (thread.places.get(before) ?? 0);
    return structuredClone(thread.checkpoints.slice(Math.max(0, end - limit), end).reverse());
  }

  async delete(threadId: string): Promise<void> {
    checkId('threadId', threadId);
    this.#threads.delete(threadId);
  }

  async putStep(threadId: string, key: string, value: JsonValue): Promise<StoredStep> {
    const copy = checkStep(threadId, key, value);
    const step = { thread_id: threadId, key, value: copy, updated_at: new Date(this.#now()).toISOString() };
    this.#open(threadId).steps.set(key, step);
    return structuredClone(step);
  }

  async getStep(threadId: string, key: string): Promise<StoredStep | null> {
    checkId('threadId', threadId);
    checkId('key', key);
    return structuredClone(this.#threads.get(threadId)?.steps.get(key) ?? null);
  }

  async listSteps(threadId: string): Promise<StoredStep[]> {
    checkId('threadId', threadId);
    return structuredClone([...(this.#threads.get(threadId)?.steps.values() ?? [])].sort(byKey));
  }

  #find(threadId: string, id: string | null): Checkpoint | undefined {
    const thread = this.#threads.get(threadId);
    return thread?.checkpoints[thread.places.get(id ?? '') ?? -1];
  }

  #open(threadId: string): Thread {
    let thread = this.#threads.get(threadId);
    if (thread === undefined) {
      thread = { checkpoints: [], places: new Map(), steps: new Map() };
      this.#threads.set(threadId, thread);
    }
    return thread;
  }
}

/** Sorts steps by the UTF-16 units of their keys, as every saver does. */
export function byKey(a: { key: string }, b: { key: string }): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}
