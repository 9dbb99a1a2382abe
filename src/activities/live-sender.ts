/** The details of the heartbeats of reads and model calls. */
import type { Context } from '@temporalio/activity';
import type { ReadEnd } from '../contract/activities.ts';
import { type LiveText, liveWindow } from '../contract/live-text.ts';

/** How often live text is sent, in milliseconds. */
const LIVE_MS = 250;

/**
 * The last heartbeat of the previous attempt. Temporal forgets it if this attempt dies without a heartbeat, so the
 * results are sent again at once.
 */
export function detailsBefore(context: Context): Partial<LiveText> {
  const { info } = context;
  const { attempt } = info;
  const before = attempt > 1 ? ((info.heartbeatDetails as Partial<LiveText> | undefined) ?? {}) : {};
  if (before.reads !== undefined) {
    const { reads } = before;
    context.heartbeat({ attempt, offset: 0, text: '', reads } satisfies LiveText);
  }
  return before;
}

/** Sends heartbeats through a model call, and with them the text so far. A failed one never fails the call. */
export class LiveSender {
  #text = '';
  #sent = -1;
  readonly #context: Context;
  readonly #reads: readonly ReadEnd[];
  readonly #live: NodeJS.Timeout;
  readonly #signs: NodeJS.Timeout;

  /** @param reads - results that must survive this worker */
  constructor(context: Context, reads: readonly ReadEnd[]) {
    this.#context = context;
    this.#reads = reads;
    this.#live = setInterval(() => {
      if (this.#text.length !== this.#sent) this.#send();
    }, LIVE_MS);
    this.#signs = setInterval(() => this.#send(), (context.info.heartbeatTimeoutMs ?? 10_000) / 4);
  }

  readonly text = (whole: string): void => {
    this.#text = whole;
  };

  stop(): void {
    clearInterval(this.#live);
    clearInterval(this.#signs);
  }

  #send(): void {
    this.#sent = this.#text.length;
    const window = liveWindow(this.#context.info.attempt, this.#text);
    this.#context.heartbeat(this.#reads.length === 0 ? window : { ...window, reads: this.#reads });
  }
}
