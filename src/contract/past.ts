/** What a session's run knows of the runs before it. */
import type { Position } from './messages.ts';
import type { ContentRef } from './thread.ts';

/** What has left the run. Its size does not grow with the session. */
export interface Past {
  /** The newest piece, which names all before it. */
  newest: ContentRef;
  /** Index in the session of the run's first message, and of its first call. */
  messages: number;
  calls: number;
  /** The end of the messages in pieces. The last of them is in the run, too. */
  sealed: Position;
  /** The turn, and the number of the user's message, at which the run began. */
  turn: number;
  message: number;
  /** The beginning of the last answer's text, when the run holds no answer. */
  lastText?: string;
  /** By tool: its last completed call, for the evidence of a plan. */
  completed: { [tool: string]: string };
  /** A piece holds mutations of runs that a reset has left. Messages of theirs may have the numbers of later ones. */
  left?: true;
  /** Ids of the last messages of people: one that is sent again is taken once. */
  messageIds: string[];
  /** A filter of all ids before those. An id that it knows is looked up in the pieces. Absent: there are none. */
  taken?: string;
}

/** Characters of the last answer that a run keeps of those before it. */
export const KEPT_TEXT = 4_000;

/** Ids of messages that a run keeps of those before it. */
export const KEPT_MESSAGE_IDS = 200;

/** Index in the run's transcript of the first message that is in no piece. */
export function unsealedFrom({ past }: { past?: Past }): number {
  return past === undefined ? 0 : past.sealed.count - past.messages;
}

/** How many of the run's calls leave it with its past: those of the present reply stay. */
export function sealedCalls({
  calls,
  batch,
}: {
  calls: readonly object[];
  batch: readonly string[];
}): number {
  return calls.length - batch.length;
}

/** Whether a pause is over. Only the last one may not be. */
export function isOver({ resumedAt }: { resumedAt: string | null }): boolean {
  return resumedAt !== null;
}
