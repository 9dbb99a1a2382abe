/** Sends the live text of model calls, and reads the heartbeat details of reads and model calls. */
import { Context } from '@temporalio/activity';
import {
  type LiveChannel,
  type LiveDelta,
  type LiveText,
  type LiveWriter,
  liveWindow,
} from '../contract/live-text.ts';
import type { ReadEnd } from '../contract/model-call.ts';
import { LiveSource } from '../temporal/live-channel.ts';
import { liveCoding } from '../temporal/payloads.ts';

/** How often a heartbeat sends live text, in milliseconds. */
const LIVE_MS = 250;

/**
 * The last heartbeat details of the previous attempt. Temporal would forget them if this attempt died without a
 * heartbeat, so the results of reads are sent again at once.
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

/** Where a model call sends its live text. */
export interface LiveOutlet {
  /** Writers to the streams of this process, and to the channel. */
  writers: readonly LiveWriter[];
  /** Whether streams of other processes read heartbeats, because there is no channel. */
  byHeartbeats: boolean;
}

/** Sends live text nowhere. */
export const SILENT: LiveOutlet = { writers: [], byHeartbeats: false };

/** Runs a model call. Streams of this process get its live text at once, and do not read its heartbeats. */
export async function liveHere<T>(
  channel: LiveChannel | undefined,
  run: (outlet: LiveOutlet) => Promise<T>,
): Promise<T> {
  const { client, info } = Context.current();
  const { workflowId = '', runId = '' } = info.workflowExecution ?? {};
  const key = { runId, activityId: info.activityId };
  const writers: LiveWriter[] = [new LiveSource(key)];
  if (channel !== undefined) writers.push(channel.write(key, liveCoding(client.options, workflowId, key)));
  for (const writer of writers) writer.begin(`${info.attempt}.0`);
  try {
    return await run({ writers, byHeartbeats: channel === undefined });
  } finally {
    for (const writer of writers) writer.end();
  }
}

/**
 * Sends the live text of a model at once to the streams of this process and to the channel. Without a channel, streams
 * of other processes read it from heartbeats. With a channel, heartbeats are rare and carry no text, because each
 * counts as an action of Temporal Cloud. A failed heartbeat never fails the call.
 */
export class LiveSender {
  #text = '';
  #sent = -1;
  #request = -1;
  readonly #context: Context;
  readonly #reads: readonly ReadEnd[];
  readonly #byHeartbeats: boolean;
  readonly #writers: readonly LiveWriter[];
  readonly #live: NodeJS.Timeout | undefined;
  readonly #signs: NodeJS.Timeout;

  /** @param reads - results that must survive this worker */
  constructor(context: Context, reads: readonly ReadEnd[], { writers, byHeartbeats }: LiveOutlet) {
    this.#context = context;
    this.#reads = reads;
    this.#writers = writers;
    this.#byHeartbeats = byHeartbeats;
    if (byHeartbeats)
      this.#live = setInterval(() => {
        if (this.#text.length !== this.#sent) this.#send();
      }, LIVE_MS);
    this.#signs = setInterval(() => this.#send(), (context.info.heartbeatTimeoutMs ?? 10_000) / 4);
  }

  /** Begins a request to a model. Text of an earlier request is void. */
  begin(): void {
    this.#text = '';
    this.#sent = -1;
    this.#request += 1;
    for (const writer of this.#writers) writer.begin(`${this.#context.info.attempt}.${this.#request}`);
  }

  readonly say = (delta: LiveDelta): void => {
    if (this.#byHeartbeats && delta.type === 'text') this.#text += delta.text;
    for (const writer of this.#writers) writer.say(delta);
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
