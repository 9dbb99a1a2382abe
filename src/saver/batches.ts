/** Batches the writes of a thread in the order of their calls: writes that wait are sent together. */
import { setImmediate } from 'node:timers/promises';
import { Turns } from '../checkpoints/turns.ts';

/** A write with its promise. */
export interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Collects writes. `work` settles each write of a batch. When it throws, the unsettled writes fail with that error. */
export class Batches<Item, Result> {
  readonly #turns = new Turns();
  /** By thread: the batch that has not begun yet and still accepts writes. */
  readonly #open = new Map<string, Waiting<Item, Result>[]>();
  readonly #work: (threadId: string, batch: readonly Waiting<Item, Result>[]) => Promise<void>;

  constructor(work: (threadId: string, batch: readonly Waiting<Item, Result>[]) => Promise<void>) {
    this.#work = work;
  }

  add(threadId: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      const open = this.#open.get(threadId);
      if (open === undefined) this.#begin(threadId, { item, resolve, reject });
      else open.push({ item, resolve, reject });
    });
  }

  alone<T>(threadId: string, work: () => Promise<T>): Promise<T> {
    this.#open.delete(threadId);
    return this.#turns.run(threadId, work);
  }

  #begin(threadId: string, first: Waiting<Item, Result>): void {
    const batch = [first];
    this.#open.set(threadId, batch);
    const run = this.#turns.run(threadId, async () => {
      // Callers that waited for the previous batch have added their next write by now.
      await setImmediate();
      if (this.#open.get(threadId) === batch) this.#open.delete(threadId);
      await this.#work(threadId, batch);
    });
    run.catch((error: unknown) => {
      for (const { reject } of batch) reject(error);
    });
  }
}
