/** What a stream of Redis holds: the pieces of an answer. */
import type { LiveDelta, LiveKey } from '../contract/live-text.ts';

export interface Entry {
  /** The request that says it. */
  request: string;
  /** Number of pieces of the request before these; with `whole`, of all pieces in it. */
  at: number;
  said: LiveDelta[];
  /** It holds all that was said, and replaces the entries before it. */
  whole?: true;
}

/** The name of the stream of a model call. */
export function streamOf({ runId, activityId }: LiveKey): string {
  return `perdure:live:${runId}:${activityId}`;
}
