/** What a saver of LangGraph knows of the checkpoints that it has put or read, so that it need not read them again. */

import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Row } from './rows.ts';

/** Checkpoints whose holders are kept in memory. */
const CACHE_SIZE = 1_000;

/** Of each channel of a checkpoint, the record that holds its value. */
export type Holders = Record<string, string>;

export class HeldCheckpoints {
  /** `null` when the thread was deleted here since. */
  readonly #holders = new LRUCache<string, Holders | false>({ max: CACHE_SIZE });
  /** Puts on their way, with their threads. */
  readonly #putting = new Map<Promise<unknown>, string>();
  /** Checkpoints that the store was given, and has not answered. */
  readonly #begun = new Set<string>();
  readonly #awaited = new Map<string, { begins: Promise<void>; begin: () => void }>();

  /** Whether a checkpoint was stored: when it is not there now, it was deleted. */
  has(thread: string, id: string): boolean {
    return this.#holders.has(keyOf(thread, id));
  }

  /**
   * Whether a checkpoint was stored, or given to the store: what belongs to it can go after it. LangGraph does not
   * wait for a put before it stores what belongs to it.
   */
  async comes(thread: string, id: string): Promise<boolean> {
    const key = keyOf(thread, id);
    const known = (): boolean => this.#holders.has(key) || this.#begun.has(key);
    while (!known()) {
      // LangGraph begins its next put when the one before has ended.
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

  /** Remembers a checkpoint that is being stored, or that it was dropped, and so is what goes on from it. */
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

  /** The thread was deleted. */
  dropAll(thread: string): void {
    // A list of their own: what is set moves to another place among the keys.
    const held = Array.from(this.#holders.keys()).filter((key) => key.startsWith(keyOf(thread, '')));
    for (const key of held) this.#holders.set(key, false);
  }

  /** Returns what `putting` does, and lets others wait for it. */
  async whilePutting<T>(thread: string, putting: Promise<T>): Promise<T> {
    this.#putting.set(putting, thread);
    try {
      return await putting;
    } finally {
      this.#putting.delete(putting);
    }
  }

  /** Waits for the puts of a thread that are on their way now. */
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
