/** The entries of a stream of Redis, which hold the pieces of an answer. */
import type { LiveDelta, LiveKey } from '../contract/live-text.ts';

export interface Entry {
  /** The model request that the pieces belong to. */
  request: string;
  /** How many pieces of the request come before these; with `whole`, how many it has in all. */
  at: number;
  said: LiveDelta[];
  /** The entry holds all that was said, and replaces the entries before it. */
  whole?: true;
}

/** The name of the stream of a model call. */
export function streamOf({ runId, activityId }: LiveKey): string {
  return `perdure:live:${runId}:${activityId}`;
}
