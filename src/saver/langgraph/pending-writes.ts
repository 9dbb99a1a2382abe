/**
 * The pending writes of checkpoints: for each checkpoint a log of numbered records. A record is never overwritten. When
 * two processes want the same number, one takes the next, so no write is lost.
 */

import { LRUCache } from 'lru-cache';
import type { CheckpointSaver } from '../../contract/checkpoint.ts';
import { isPerdureError } from '../../contract/errors.ts';
import type { JsonValue } from '../../contract/json.ts';
import { Batches, type Waiting } from '../batches.ts';
import type { HeldCheckpoints } from './held-checkpoints.ts';
import { putRecord } from './put-record.ts';
import { logId, merge, type StoredWrite } from './rows.ts';

const CACHE_SIZE = 1_000;
/** Records of a log that are read at once. Most logs have one. */
const WINDOW = 2;

interface NewWrites {
  id: string;
  fresh: readonly StoredWrite[];
  /** The checkpoint was stored or sent to the store. If it is gone, it was deleted, and the writes are dropped. */
  bound: boolean;
}

export class PendingWrites {
  readonly #saver: CheckpointSaver;
  readonly #held: HeldCheckpoints;
  readonly #ends = new LRUCache<string, number>({ max: CACHE_SIZE });
  readonly #adding: Batches<NewWrites, void> = new Batches((thread, batch) => this.#addAll(thread, batch));

  constructor(saver: CheckpointSaver, held: HeldCheckpoints) {
    this.#saver = saver;
    this.#held = held;
  }

  /** Stores writes. Writes of a deleted checkpoint are dropped. */
  add(thread: string, writes: NewWrites): Promise<void> {
    return this.#adding.add(thread, writes);
  }

  async read(thread: string, id: string): Promise<StoredWrite[]> {
    return (await this.#log(thread, id)).reduce(merge, []);
  }

  forget(thread: string): void {
    const ends = Array.from(this.#ends.keys()).filter((key) => key.startsWith(`${thread}\n`));
    for (const key of ends) this.#ends.delete(key);
  }

  async #addAll(thread: string, batch: readonly Waiting<NewWrites, void>[]): Promise<void> {
    const byId = new Map<string, Waiting<NewWrites, void>[]>();
    for (const one of batch) byId.set(one.item.id, [...(byId.get(one.item.id) ?? []), one]);
    await Promise.all(
      [...byId].map(async ([id, waiting]) => {
        try {
          const fresh = waiting.reduce<StoredWrite[]>((writes, { item }) => merge(writes, item.fresh), []);
          await this.#append(
            thread,
            id,
            fresh,
            waiting.some(({ item }) => item.bound),
          );
          for (const { resolve } of waiting) resolve();
        } catch (error) {
          for (const { reject } of waiting) reject(error);
        }
      }),
    );
  }

  async #append(thread: string, id: string, fresh: StoredWrite[], bound: boolean): Promise<void> {
    const key = `${thread}\n${id}`;
    const state = { writes: fresh as JsonValue };
    const put = (n: number): Promise<boolean> => {
      const options = bound ? { id: logId(id, n), parentId: id } : { id: logId(id, n) };
      return putRecord(this.#saver, thread, state, options);
    };
    for (let n = this.#ends.get(key) ?? 0; ; n = (await this.#log(thread, id)).length) {
      try {
        let isStored = await put(n);
        if (!isStored) {
          // The checkpoint was deleted, or is not stored yet: a store may process requests out of order.
          await this.#held.settled(thread);
          isStored = await put(n);
        }
        if (isStored) this.#ends.set(key, n + 1);
        return;
      } catch (error) {
        const taken =
          isPerdureError(error, 'CONFLICT') &&
          (await this.#saver.get(thread, { checkpointId: logId(id, n) })) !== null;
        if (!taken) throw error;
      }
    }
  }

  async #log(thread: string, id: string): Promise<StoredWrite[][]> {
    const found: StoredWrite[][] = [];
    for (let window = WINDOW; ; window *= 2) {
      const records = await Promise.all(
        Array.from({ length: window }, (_, i) =>
          this.#saver.get(thread, { checkpointId: logId(id, found.length + i) }),
        ),
      );
      for (const record of records) {
        if (record === null) {
          if (found.length > 0) this.#ends.set(`${thread}\n${id}`, found.length);
          return found;
        }
        found.push(record.state['writes'] as unknown as StoredWrite[]);
      }
    }
  }
}
