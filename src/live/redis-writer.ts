/** Writes the answer of a model call to its stream. */
import { setTimeout as delay } from 'node:timers/promises';
import { addDelta, type LiveCoding, type LiveDelta, type LiveWriter } from '../contract/live-text.ts';
import type { Entry } from './entry.ts';
import { RETRY_MS, type RedisLink } from './redis-link.ts';

/** After so many pieces, an entry with the whole answer replaces those before it. In a long answer it takes more. */
const PIECES = 256;
/** How long a stream stays without news, and after the end of its call, in seconds. */
const STAYS = { silent: 900, ended: 60 } as const;
/** Pause between two renewals of a stream's expiry, in milliseconds. */
const RENEW_MS = 60_000;

/**
 * Sends one entry at a time. Text that comes meanwhile goes into the next entry. After a failure the next entry holds
 * the whole answer, so nothing piles up while Redis is unavailable.
 */
export class RedisWriter implements LiveWriter {
  readonly #link: RedisLink;
  readonly #stream: string;
  readonly #coding: LiveCoding;
  #request = '';
  #said: LiveDelta[] = [];
  /** Pieces in `said`. */
  #count = 0;
  /** Pieces that no entry holds yet. */
  #fresh: LiveDelta[] = [];
  #isWholeDue = false;
  /** Pieces since the last whole entry. */
  #since = 0;
  #renewAt = 0;
  #isBusy = false;
  #isEnded = false;

  constructor(link: RedisLink, stream: string, coding: LiveCoding) {
    this.#link = link;
    this.#stream = stream;
    this.#coding = coding;
  }

  begin(request: string): void {
    if (request === this.#request && this.#count === 0) return;
    this.#request = request;
    this.#said = [];
    this.#count = 0;
    this.#isWholeDue = true;
    void this.#write();
  }

  say(delta: LiveDelta): void {
    addDelta(this.#said, delta);
    this.#count += 1;
    if (this.#fresh.length < PIECES) this.#fresh.push(delta);
    else this.#isWholeDue = true;
    void this.#write();
  }

  end(): void {
    this.#isEnded = true;
    void this.#write();
  }

  async #write(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    while (this.#isWholeDue || this.#fresh.length > 0) {
      try {
        await this.#send(this.#next());
      } catch {
        // The answer is about to be recorded, so its live text is not worth another try.
        if (this.#isEnded) return;
        this.#isWholeDue = true;
        this.#renewAt = 0;
        await delay(RETRY_MS, undefined, { ref: false });
      }
    }
    this.#isBusy = false;
    if (this.#isEnded) await this.#expire(STAYS.ended).catch(() => undefined);
  }

  #next(): Entry {
    const isWhole = this.#isWholeDue || this.#since >= Math.max(PIECES, this.#count / 8);
    const fresh = isWhole ? [] : this.#fresh;
    this.#isWholeDue = false;
    this.#fresh = [];
    this.#since = isWhole ? 0 : this.#since + fresh.length;
    const request = this.#request;
    if (!isWhole) return { request, at: this.#count - fresh.length, said: fresh };
    return { request, at: this.#count, said: [...this.#said], whole: true };
  }

  async #send(entry: Entry): Promise<void> {
    const bytes = Buffer.from(await this.#coding.encode(entry));
    const cut = entry.whole === true ? ['MAXLEN', '1'] : [];
    const added = this.#link.ask(['XADD', this.#stream, ...cut, '*', 'entry', bytes]);
    const isDue = Date.now() >= this.#renewAt;
    if (isDue) this.#renewAt = Date.now() + RENEW_MS;
    await (isDue ? Promise.all([added, this.#expire(STAYS.silent)]) : added);
  }

  #expire(seconds: number): Promise<unknown> {
    return this.#link.ask(['EXPIRE', this.#stream, String(seconds)]);
  }
}
