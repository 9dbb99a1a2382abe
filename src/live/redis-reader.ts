/** Reads the streams of all followed model calls over one connection that blocks. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  addDelta,
  isOlder,
  type LiveCoding,
  type LiveDelta,
  type LiveListener,
} from '../contract/live-text.ts';
import type { Entry } from './entry.ts';
import { RETRY_MS, type RedisLink } from './redis-link.ts';

/** How long Redis waits for news, in milliseconds. */
const BLOCK_MS = 1_000;
/** The longest pause between two reads, and the pause for each stream, in milliseconds. */
const PAUSE_MS = { most: 10, each: 0.1 } as const;
/** Pause between two tries to wake the reading connection, in milliseconds. */
const WAKE_MS = 5;

/** The reply of `XREAD`: entries by stream. An entry is its id, and names and values. */
type Reply = [stream: Buffer, entries: [id: Buffer, fields: Buffer[]][]][] | null;

export class RedisReader {
  /** The connection whose reads block. */
  readonly #link: RedisLink;
  /** The connection that wakes the other one. */
  readonly #waker: RedisLink;
  readonly #followed = new Map<string, Followed>();
  #isRunning = false;
  #isWaking = false;
  /** Whether there is a stream that the connection does not wait for yet. */
  #hasNew = false;

  constructor(link: RedisLink, waker: RedisLink) {
    this.#link = link;
    this.#waker = waker;
  }

  /** Passes what is in a stream, and what is added to it, to a listener. @returns a function that stops this */
  read(stream: string, coding: LiveCoding, listener: LiveListener): () => void {
    let followed = this.#followed.get(stream);
    if (followed === undefined) {
      followed = new Followed(coding);
      this.#followed.set(stream, followed);
      this.#hasNew = true;
    }
    const own = followed;
    own.join(listener);
    void this.#run();
    void this.#wake();
    return () => {
      own.leave(listener);
      if (own.isEmpty && this.#followed.get(stream) === own) this.#followed.delete(stream);
    };
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#followed.size > 0) {
      this.#hasNew = false;
      const asked = new Map(this.#followed);
      const ids = [...asked.values()].map(({ last }) => last);
      const block = ['BLOCK', String(BLOCK_MS), 'COUNT', '1000'];
      try {
        const reply = await this.#link.ask(['XREAD', ...block, 'STREAMS', ...asked.keys(), ...ids], BLOCK_MS);
        // All streams in parallel, because codecs may be slow. The next read waits for all of them.
        await Promise.all(
          (reply as Reply)?.map(([name, entries]) => take(asked.get(String(name)), entries)) ?? [],
        );
        // Each read names all streams. With many streams, a read for each piece would keep Redis and this process busy.
        const pause = Math.min(PAUSE_MS.most, Math.floor(asked.size * PAUSE_MS.each));
        if (pause > 0) await delay(pause, undefined, { ref: false });
      } catch {
        await delay(RETRY_MS, undefined, { ref: false });
      }
    }
    this.#isRunning = false;
  }

  /** Makes the connection wait for new streams, too. Without permission to unblock it, they wait for its next read. */
  async #wake(): Promise<void> {
    if (this.#isWaking) return;
    this.#isWaking = true;
    while (this.#hasNew && this.#link.id !== null) {
      try {
        await this.#waker.ask(['CLIENT', 'UNBLOCK', this.#link.id]);
      } catch {
        break;
      }
      await delay(WAKE_MS, undefined, { ref: false });
    }
    this.#isWaking = false;
  }
}

/**
 * Passes entries to the readers for whom they were requested. The next read starts at the first entry for readers who
 * have joined meanwhile.
 */
async function take(followed: Followed | undefined, entries: [Buffer, Buffer[]][]): Promise<void> {
  for (const [id, [, bytes]] of entries) {
    if (followed === undefined || followed.isEmpty) return;
    followed.last = String(id);
    // An entry that cannot be decoded is lost. Its text comes with the whole answer.
    if (bytes !== undefined) await followed.take(bytes).catch(() => undefined);
  }
}

/** A stream with its readers. */
class Followed {
  /** Id of the last entry that was read. */
  last = '0';
  readonly #coding: LiveCoding;
  readonly #listeners = new Set<LiveListener>();
  #request: string | null = null;
  #said: LiveDelta[] = [];
  /** Pieces in `said`. */
  #count = 0;

  constructor(coding: LiveCoding) {
    this.#coding = coding;
  }

  get isEmpty(): boolean {
    return this.#listeners.size === 0;
  }

  join(listener: LiveListener): void {
    this.#listeners.add(listener);
    if (this.#request !== null) listener.begin(this.#request);
    for (const delta of this.#said) listener.say(delta);
  }

  leave(listener: LiveListener): void {
    this.#listeners.delete(listener);
  }

  async take(bytes: Uint8Array): Promise<void> {
    const { request, at, said, whole } = (await this.#coding.decode(bytes)) as Entry;
    if (this.#request !== request) {
      // A worker that was frozen may go on with an older request.
      if (this.#request !== null && isOlder(request, this.#request)) return;
      this.#request = request;
      this.#said = [];
      this.#count = 0;
      for (const listener of this.#listeners) listener.begin(request);
    }
    if (whole === true) {
      if (at > this.#count) for (const delta of missing(this.#said, said)) this.#say(delta);
      this.#count = Math.max(at, this.#count);
    } else if (at === this.#count) {
      for (const delta of said) this.#say(delta);
      this.#count += said.length;
    }
    // An entry without the pieces before it is dropped. Its text comes with the next whole entry.
  }

  #say(delta: LiveDelta): void {
    addDelta(this.#said, delta);
    for (const listener of this.#listeners) listener.say(delta);
  }
}

/** The part of the whole text that a reader lacks. */
function missing(said: readonly LiveDelta[], whole: readonly LiveDelta[]): LiveDelta[] {
  return whole.flatMap((delta, i) => {
    const text = delta.text.slice(said[i]?.text.length ?? 0);
    return text === '' ? [] : [{ ...delta, text }];
  });
}
