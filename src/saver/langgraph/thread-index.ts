/**
 * The names of a checkpointer's threads, for lists over all of them: one step each in a thread of the store. When that
 * thread is full, the index continues in another one.
 */

import { LRUCache } from 'lru-cache';
import { Turns } from '../../checkpoints/turns.ts';
import type { CheckpointSaver } from '../../contract/checkpoint.ts';
import { isPerdureError } from '../../contract/errors.ts';

const CACHE_SIZE = 10_000;
/** The record that marks every part but the first. */
const OPENED = 'opened';

export class ThreadIndex {
  readonly #saver: CheckpointSaver;
  readonly #prefix: string;
  readonly #listed = new LRUCache<string, Promise<void>>({ max: CACHE_SIZE });
  /** Runs reads one at a time: the index is one workflow, and a busy workflow answers one query. */
  readonly #reads = new Turns();
  #finding: Promise<void> | null = null;
  /** The number of the newest part, the only one that is written to. */
  #newest = 0;

  constructor(saver: CheckpointSaver, prefix: string) {
    this.#saver = saver;
    this.#prefix = prefix;
  }

  /**
   * Lists a thread. A new thread is written without a read: many writes fit into one update, but the server rejects
   * many queries at once.
   */
  add(threadId: string, begins: boolean): Promise<void> {
    const known = begins ? undefined : this.#listed.get(threadId);
    if (known !== undefined) return known;
    const listing = this.#add(threadId, begins);
    this.#listed.set(threadId, listing);
    // A failed call is repeated by the next caller.
    listing.catch(() => {
      if (this.#listed.get(threadId) === listing) this.#listed.delete(threadId);
    });
    return listing;
  }

  async remove(threadId: string): Promise<void> {
    this.#listed.delete(threadId);
    await this.#findNewest();
    await this.#write(threadId, null);
  }

  async all(): Promise<string[]> {
    await this.#findNewest();
    const parts = await Promise.all(this.#parts().map((part) => this.#saver.listSteps(part)));
    // The newest entry of a thread counts.
    const listed = new Map(parts.flat().map(({ key, value }) => [key, value === true]));
    return [...listed].filter(([, is]) => is).map(([threadId]) => threadId);
  }

  async #add(threadId: string, begins: boolean): Promise<void> {
    await this.#findNewest();
    if (begins || !(await this.#reads.run('', () => this.#isListed(threadId))))
      await this.#write(threadId, true);
  }

  async #isListed(threadId: string): Promise<boolean> {
    const steps = await Promise.all(this.#parts().map((part) => this.#saver.getStep(part, threadId)));
    return steps.findLast((step) => step !== null)?.value === true;
  }

  async #write(threadId: string, listed: true | null): Promise<void> {
    try {
      await this.#saver.putStep(this.#part(this.#newest), threadId, listed);
    } catch (error) {
      if (!isPerdureError(error, 'TOO_LARGE')) throw error;
      const next = this.#newest + 1;
      await this.#saver.put(this.#part(next), {}, { id: OPENED });
      await this.#saver.putStep(this.#part(next), threadId, listed);
      this.#newest = Math.max(this.#newest, next);
    }
  }

  #findNewest(): Promise<void> {
    this.#finding ??= this.#findOn().finally(() => {
      this.#finding = null;
    });
    return this.#finding;
  }

  async #findOn(): Promise<void> {
    for (;;) {
      const next = this.#newest + 1;
      if ((await this.#saver.get(this.#part(next), { checkpointId: OPENED })) === null) return;
      this.#newest = Math.max(this.#newest, next);
    }
  }

  #parts(): string[] {
    return Array.from({ length: this.#newest + 1 }, (_, n) => this.#part(n));
  }

  #part(n: number): string {
    return n === 0 ? this.#prefix : `${this.#prefix} (${n + 1})`;
  }
}
