/**
 * The names of the threads of a checkpointer, for lists over all of them: a step each, in a thread of the store. Where
 * a thread of the store can become full, the index goes on in another.
 */

import { LRUCache } from 'lru-cache';
import { Turns } from '../../checkpoints/turns.ts';
import type { CheckpointSaver } from '../../contract/checkpoint.ts';
import { isPerdureError } from '../../contract/errors.ts';

/** Threads of which is remembered that they are in the index. */
const INDEXED_AT_HAND = 10_000;
/** The record of every part but the first, by which it is found. */
const OPENED = 'opened';

export class ThreadIndex {
  readonly #saver: CheckpointSaver;
  readonly #prefix: string;
  readonly #listed = new LRUCache<string, Promise<void>>({ max: INDEXED_AT_HAND });
  /** Reads of the index: it is one workflow for all threads, and a server holds one query for a busy workflow. */
  readonly #reads = new Turns();
  #finding: Promise<void> | null = null;
  /** The number of the newest part: only this one is written to. */
  #newest = 0;

  constructor(saver: CheckpointSaver, prefix: string) {
    this.#saver = saver;
    this.#prefix = prefix;
  }

  /**
   * Lists a thread.
   *
   * @param begins - the thread begins, perhaps after it was deleted elsewhere. It is written without a look at the
   * index: many writes fit into one update, but a query each, of many threads at once, the server turns away.
   */
  add(threadId: string, begins: boolean): Promise<void> {
    const known = begins ? undefined : this.#listed.get(threadId);
    if (known !== undefined) return known;
    const listing = this.#add(threadId, begins);
    this.#listed.set(threadId, listing);
    // What has failed is tried again by who comes next.
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
    // The newest word on a thread counts.
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

  /** Who asks while others ask gets their answer. */
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

  /** Oldest first. */
  #parts(): string[] {
    return Array.from({ length: this.#newest + 1 }, (_, n) => this.#part(n));
  }

  #part(n: number): string {
    return n === 0 ? this.#prefix : `${this.#prefix} (${n + 1})`;
  }
}
