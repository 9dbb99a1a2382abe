/** The details of the heartbeats of reads and model calls. */
import { Context } from '@temporalio/activity';
import type { ReadEnd } from '../contract/activities.ts';
import { type LiveDelta, type LiveText, liveWindow } from '../contract/live-text.ts';
import { LiveSource } from '../temporal/live-channel.ts';

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

/** Runs a model call. Streams of this process read no heartbeats of it: they hear it here. */
export async function liveHere<T>(run: (here: LiveSource) => Promise<T>): Promise<T> {
  const { activityId, attempt, workflowExecution } = Context.current().info;
  const source = new LiveSource({ runId: workflowExecution?.runId ?? '', activityId });
  source.begin(`${attempt}.0`);
  try {
    return await run(source);
  } finally {
    source.end();
  }
}

/**
 * Tells what the model says: at once to streams of this process, and to those elsewhere by heartbeats, which it sends through
 * the whole call. A failed one never fails the call.
 */
export class LiveSender {
  #text = '';
  #sent = -1;
  #request = -1;
  readonly #context: Context;
  readonly #reads: readonly ReadEnd[];
  readonly #here: LiveSource;
  readonly #live: NodeJS.Timeout;
  readonly #signs: NodeJS.Timeout;

  /** @param reads - results that must survive this worker */
  constructor(context: Context, reads: readonly ReadEnd[], here: LiveSource) {
    this.#context = context;
    this.#reads = reads;
    this.#here = here;
    this.#live = setInterval(() => {
      if (this.#text.length !== this.#sent) this.#send();
    }, LIVE_MS);
    this.#signs = setInterval(() => this.#send(), (context.info.heartbeatTimeoutMs ?? 10_000) / 4);
  }

  /** A model is asked: what another has said before is void. */
  begin(): void {
    this.#text = '';
    this.#sent = -1;
    this.#request += 1;
    this.#here.begin(`${this.#context.info.attempt}.${this.#request}`);
  }

  readonly say = (delta: LiveDelta): void => {
    if (delta.type === 'text') this.#text += delta.text;
    this.#here.say(delta);
  };

  stop(): void {
    clearInterval(this.#live);
    clearInterval(this.#signs);
  }

  #send(): void {
    this.#sent = this.#text.length;
    const window = liveWindow(this.#context.info.attempt, this.#text, Math.max(0, this.#request));
    this.#context.heartbeat(this.#reads.length === 0 ? window : { ...window, reads: this.#reads });
  }
}
