/** Writes of one thread, in the order of their calls: what waits while others are on their way goes together next. */
import { setImmediate } from 'node:timers/promises';
import { Turns } from '../checkpoints/turns.ts';

/** A write, and where its own answer or error goes. */
export interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Collects writes; `work` settles each of a batch, and one that it leaves when it throws fails with that. */
export class Batches<Item, Result> {
  readonly #turns = new Turns();
  /** The batch of a thread that has not begun, and that nothing else has been asked for after. */
  readonly #open = new Map<string, Waiting<Item, Result>[]>();
  readonly #work: (threadId: string, batch: readonly Waiting<Item, Result>[]) => Promise<void>;

  constructor(work: (threadId: string, batch: readonly Waiting<Item, Result>[]) => Promise<void>) {
    this.#work = work;
  }

  /** Adds a write to those that go next. */
  add(threadId: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      const open = this.#open.get(threadId);
      if (open === undefined) this.#begin(threadId, { item, resolve, reject });
      else open.push({ item, resolve, reject });
    });
  }

  /** Runs something by itself, after all that was asked for before, and before all that is asked for later. */
  alone<T>(threadId: string, work: () => Promise<T>): Promise<T> {
    this.#open.delete(threadId);
    return this.#turns.run(threadId, work);
  }

  #begin(threadId: string, first: Waiting<Item, Result>): void {
    const batch = [first];
    this.#open.set(threadId, batch);
    const run = this.#turns.run(threadId, async () => {
      // Who only waited for the batch before has its next write ready by then.
      await setImmediate();
      if (this.#open.get(threadId) === batch) this.#open.delete(threadId);
      await this.#work(threadId, batch);
    });
    run.catch((error: unknown) => {
      for (const { reject } of batch) reject(error);
    });
  }
}
