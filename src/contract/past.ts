/** What a session's run knows about the runs before it. */
import type { Position } from './messages.ts';
import type { ContentRef } from './thread.ts';

/** What has left the run. The size of this record does not grow with the session. */
export interface Past {
  /** The newest sealed piece. It names all older pieces. */
  newest: ContentRef;
  /** Index in the session of the run's first message, and of its first call. */
  messages: number;
  calls: number;
  /** The position at the end of the messages in the pieces. The last of these messages is in the run, too. */
  sealed: Position;
  /** The turn, and the number of the user's message, at which the run began. */
  turn: number;
  message: number;
  /** The beginning of the last answer's text, when the run holds no answer. */
  lastText?: string;
  /** By tool: the id of its last completed call, for the evidence of a plan. */
  completed: { [tool: string]: string };
  /** A piece holds mutations of runs that a reset abandoned. Message numbers of those runs may have been used again. */
  left?: true;
  /** Ids of the last messages of people: a message that is sent again is taken once. */
  messageIds: string[];
  /** For each of these ids, the start of the digest of the message's content, or `''`. Absent: nobody knows. */
  messageDigests?: string[];
  /**
   * A filter over all earlier ids. An id that passes it is looked up in the pieces. Absent: there are no earlier ids.
   */
  taken?: string;
}

/** How many characters a run keeps of the last answer of an earlier run. */
export const KEPT_TEXT = 4_000;

/** How many message ids a run keeps of the runs before it. */
export const KEPT_MESSAGE_IDS = 200;

/** Index in the run's transcript of the first message that is in no piece. */
export function unsealedFrom({ past }: { past?: Past }): number {
  return past === undefined ? 0 : past.sealed.count - past.messages;
}

/** How many of the run's calls leave it with its past. The calls of the present reply stay. */
export function sealedCalls({
  calls,
  batch,
}: {
  calls: readonly object[];
  batch: readonly string[];
}): number {
  return calls.length - batch.length;
}

/** Whether a pause is over. Only the last pause may still last. */
export function isOver({ resumedAt }: { resumedAt: string | null }): boolean {
  return resumedAt !== null;
}
