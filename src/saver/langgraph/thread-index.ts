/**
 * The names of the threads of a checkpointer, for lists over all of them: a step each, in a thread of the store. Where
 * a thread of the store can become full, the index goes on in another.
 */

import { keep } from '../../checkpoints/keep.ts';
import type { CheckpointSaver } from '../../contract/checkpoint.ts';
import { isPerdureError } from '../../contract/errors.ts';

/** Threads of which is remembered that they are in the index. */
const INDEXED_AT_HAND = 10_000;
/** The record of every part but the first, by which it is found. */
const OPENED = 'opened';

export class ThreadIndex {
  readonly #saver: CheckpointSaver;
  readonly #prefix: string;
  readonly #listed = new Map<string, Promise<void>>();
  /** The number of the newest part: only this one is written to. */
  #newest = 0;

  constructor(saver: CheckpointSaver, prefix: string) {
    this.#saver = saver;
    this.#prefix = prefix;
  }

  /** @param again - look again, though it is remembered: the thread begins, perhaps after a deletion elsewhere */
  add(threadId: string, again: boolean): Promise<void> {
    const known = again ? undefined : this.#listed.get(threadId);
    if (known !== undefined) return known;
    const listing = this.#add(threadId);
    keep(this.#listed, threadId, listing, INDEXED_AT_HAND);
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

  async #add(threadId: string): Promise<void> {
    await this.#findNewest();
    const steps = await Promise.all(this.#parts().map((part) => this.#saver.getStep(part, threadId)));
    if (steps.findLast((step) => step !== null)?.value !== true) await this.#write(threadId, true);
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

  async #findNewest(): Promise<void> {
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
