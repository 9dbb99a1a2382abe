import { messageOf, PerdureError } from '../contract/errors.ts';
import type { LiveChannel, LiveCoding, LiveKey, LiveListener, LiveWriter } from '../contract/live-text.ts';
import { streamOf } from './entry.ts';
import { RedisLink } from './redis-link.ts';
import { RedisReader } from './redis-reader.ts';
import { RedisWriter } from './redis-writer.ts';

/** Pause between two warnings of a channel, in milliseconds. */
const WARN_MS = 60_000;

/**
 * Carries the live text of models through streams of Redis, from all workers to all processes that show it. Needs the
 * optional package `redis`, and Redis 5 or later, not a cluster. While Redis is unavailable, answers arrive as a whole,
 * and nothing else changes. Only the constructor throws, and nothing waits: the channel warns at most once a minute.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { RedisLiveChannel, Sessions } from 'perdure/client';
 *
 * // The workers get one, too: createWorker({ agents, live }).
 * const live = new RedisLiveChannel('redis://localhost:6379');
 * export const sessions = new Sessions(new Client(), { live });
 * ```
 */
export class RedisLiveChannel implements LiveChannel {
  readonly #place: string;
  /** For commands that are answered at once. */
  readonly #link: RedisLink;
  readonly #blocking: RedisLink;
  readonly #reader: RedisReader;
  #warnedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param url - `redis://user:password@host:6379/0`, or `rediss://` for TLS.
   * @throws PerdureError `INVALID_ARGUMENT`
   */
  constructor(url: string) {
    const parsed = URL.canParse(url) ? new URL(url) : null;
    if (parsed === null || !/^rediss?:$/i.test(parsed.protocol) || parsed.host === '')
      throw new PerdureError('INVALID_ARGUMENT', 'url: write redis://user:password@host:6379');
    this.#place = `${parsed.protocol}//${parsed.host}`;
    const onEnd = (error: unknown): void => this.#warn(error);
    this.#link = new RedisLink(url, onEnd);
    this.#blocking = new RedisLink(url, onEnd);
    this.#reader = new RedisReader(this.#blocking, this.#link);
  }

  write(key: LiveKey, coding: LiveCoding): LiveWriter {
    return new RedisWriter(this.#link, streamOf(key), coding);
  }

  read(key: LiveKey, coding: LiveCoding, listener: LiveListener): () => void {
    return this.#reader.read(streamOf(key), coding, listener);
  }

  close(): void {
    this.#link.close();
    this.#blocking.close();
  }

  #warn(error: unknown): void {
    if (Date.now() < this.#warnedAt + WARN_MS) return;
    this.#warnedAt = Date.now();
    process.emitWarning(
      `The live channel ${this.#place} cannot be used: ${messageOf(error)}. Answers arrive as a whole`,
      {
        type: 'PerdureWarning',
      },
    );
  }
}
