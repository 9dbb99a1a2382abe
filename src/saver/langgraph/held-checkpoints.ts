/** Checkpoints that a LangGraph saver has put or read, so that it need not read them again. */

import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Row } from './rows.ts';

const CACHE_SIZE = 1_000;

/** By channel of a checkpoint: the id of the record that holds its value. */
export type Holders = Record<string, string>;

export class HeldCheckpoints {
  /** `false`: this saver deleted the thread, or dropped the checkpoint. */
  readonly #holders = new LRUCache<string, Holders | false>({ max: CACHE_SIZE });
  /** Puts in progress, with their threads. */
  readonly #putting = new Map<Promise<unknown>, string>();
  /** Checkpoints that were sent to the store, which has not acknowledged them yet. */
  readonly #begun = new Set<string>();
  readonly #awaited = new Map<string, { begins: Promise<void>; begin: () => void }>();

  /** Whether this saver has stored, read or dropped a checkpoint. If the store does not have it now, it was deleted. */
  has(thread: string, id: string): boolean {
    return this.#holders.has(keyOf(thread, id));
  }

  /**
   * Whether a checkpoint was stored or sent to the store. Waits for puts in progress, because LangGraph stores writes
   * before the put of their checkpoint returns.
   */
  async comes(thread: string, id: string): Promise<boolean> {
    const key = keyOf(thread, id);
    const known = (): boolean => this.#holders.has(key) || this.#begun.has(key);
    while (!known()) {
      // LangGraph begins its next put when the previous one has ended.
      if (this.#puts(thread).length === 0) await setImmediate();
      if (this.#puts(thread).length === 0) break;
      await Promise.race([this.settled(thread), this.#beginning(key)]);
    }
    this.#awaited.delete(key);
    return known();
  }

  holders(thread: string, id: string): Holders | undefined {
    return this.#holders.get(keyOf(thread, id)) || undefined;
  }

  remember(thread: string, id: string, row: Row): Holders {
    const own = Object.keys(row.values).map((channel) => [channel, id] as const);
    const holders = { ...row.holders, ...Object.fromEntries(own) };
    this.#holders.set(keyOf(thread, id), holders);
    return holders;
  }

  /** Remembers the outcome of a put: stored, or dropped because its parent was deleted. */
  async whileStoring(thread: string, id: string, row: Row, storing: Promise<boolean>): Promise<void> {
    const key = keyOf(thread, id);
    this.#begun.add(key);
    this.#awaited.get(key)?.begin();
    try {
      if (await storing) this.remember(thread, id, row);
      else this.drop(thread, id);
    } finally {
      this.#begun.delete(key);
    }
  }

  drop(thread: string, id: string): void {
    this.#holders.set(keyOf(thread, id), false);
  }

  dropAll(thread: string): void {
    // A copy: setting a key moves it to the end.
    const held = Array.from(this.#holders.keys()).filter((key) => key.startsWith(keyOf(thread, '')));
    for (const key of held) this.#holders.set(key, false);
  }

  async whilePutting<T>(thread: string, putting: Promise<T>): Promise<T> {
    this.#putting.set(putting, thread);
    try {
      return await putting;
    } finally {
      this.#putting.delete(putting);
    }
  }

  /** Waits for the puts of a thread that are in progress. */
  async settled(thread: string): Promise<void> {
    await Promise.allSettled(this.#puts(thread));
  }

  #beginning(key: string): Promise<void> {
    let awaited = this.#awaited.get(key);
    if (awaited === undefined) {
      let begin = (): void => undefined;
      const begins = new Promise<void>((resolve) => {
        begin = resolve;
      });
      awaited = { begins, begin };
      this.#awaited.set(key, awaited);
    }
    return awaited.begins;
  }

  #puts(thread: string): Promise<unknown>[] {
    return [...this.#putting].filter(([, of]) => of === thread).map(([putting]) => putting);
  }
}

function keyOf(thread: string, id: string): string {
  return `${thread}\n${id}`;
}
