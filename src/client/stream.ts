/** Streams a session live: what its history records, as it is recorded, and meanwhile the text of the model. */
import type { Client } from '@temporalio/client';
import { invalid } from '../contract/errors.ts';
import type { LiveChannel } from '../contract/live-text.ts';
import type { LivePart } from './stream-answer.ts';
import { subscribe } from './stream-follower.ts';
import type { DurablePart, Rest } from './stream-subscription.ts';

/**
 * A part of a live session. Parts with a `cursor` are recorded. The others are pieces of an answer that is being
 * written, and may be lost. But before the `message` of an answer comes the rest of its text. So the texts since the
 * last message, or since the last `reset`, are the answer.
 */
export type StreamPart = LivePart | DurablePart;

/** Options of `Session.stream`. */
export interface StreamOptions {
  /**
   * The cursor of a part, or the id of a checkpoint: everything after it comes, once and in order, from this run and
   * those after it. `start`: everything that the server still has. Default: what is open now, and what comes.
   */
  since?: string | undefined;
  /**
   * When the stream ends. `idle`: when nothing is left to do, but not at approvals, waits and pauses. `rest`: also when
   * the session waits for somebody. `closed`: when the session is closed. Default: `idle`.
   */
  until?: 'idle' | 'rest' | 'closed' | undefined;
  signal?: AbortSignal | undefined;
}

const ENDS: Readonly<Record<NonNullable<StreamOptions['until']>, readonly Rest[]>> = {
  idle: ['idle', 'closed'],
  rest: ['idle', 'rest', 'closed'],
  closed: ['closed'],
};

/** Follows a session. */
export async function* streamSession(
  client: Client,
  id: string,
  { since, until = 'idle', signal }: StreamOptions,
  live: LiveChannel | undefined,
): AsyncGenerator<StreamPart> {
  if (!Object.hasOwn(ENDS, until)) throw invalid('until', 'is idle, rest or closed');
  if (isAborted(signal)) return;
  const parts = subscribe(client, id, since === '' ? undefined : since, live);
  const close = (): void => parts.close();
  signal?.addEventListener('abort', close, { once: true });
  try {
    for (let batch = await parts.next(); batch !== null; batch = await parts.next()) {
      for (const part of batch.parts) {
        yield part;
        if (isAborted(signal)) return;
      }
      if (batch.rest !== undefined && ENDS[until].includes(batch.rest)) return;
    }
  } finally {
    signal?.removeEventListener('abort', close);
    close();
  }
}

/** A function, because the signal may change while the reader handles a part. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
