/** Sealed pieces of a session's transcript and call log. */
import type { ToolCall } from './calls.ts';
import type { Message } from './messages.ts';
import type { Notice, SessionState } from './state.ts';
import type { ContentRef } from './thread.ts';

/** A piece before another. */
export interface PieceRef extends ContentRef {
  /** 0 for one that a run has stored; one more for one that pieces were merged into. */
  level: number;
  messages: number;
  calls: number;
}

/** What a state notes of messages, by their ids. It leaves the run with the messages. */
export const MESSAGE_NOTES = ['answeredBy', 'instructedBy', 'finishReasons'] as const;

export type MessageNotes = Pick<SessionState, (typeof MESSAGE_NOTES)[number]>;

/** A sealed piece. It is written once and never changes. */
export interface Piece extends MessageNotes {
  schema: 1;
  level: number;
  /** Older pieces, oldest first. */
  before: PieceRef[];
  messages: Message[];
  calls: ToolCall[];
  /** Mutations of runs that a reset has left: their record answers equal calls, too. */
  left?: readonly ToolCall[];
  notices: Notice[];
  pauses: SessionState['pauses'];
}
