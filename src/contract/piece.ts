/** Sealed pieces of a session's transcript and call log. */
import type { ToolCall } from './calls.ts';
import type { Message } from './messages.ts';
import { isOver, sealedCalls, unsealedFrom } from './past.ts';
import type { Notice, SessionState } from './state.ts';
import type { ContentRef } from './thread.ts';

/** A reference to an older piece. */
export interface PieceRef extends ContentRef {
  /** 0 for a piece that a run stored; a merged piece is one level above its parts. */
  level: number;
  messages: number;
  calls: number;
}

/** The fields of a state that hold notes by message id. The notes leave the run with the messages. */
export const MESSAGE_NOTES = ['answeredBy', 'instructedBy', 'finishReasons'] as const;

export type MessageNotes = Pick<SessionState, 'answeredBy' | 'instructedBy' | 'finishReasons'>;

/** What leaves a run. */
export interface Leaving extends MessageNotes {
  /** The effect namespace of the calls. Calls of a fork's origin may have another namespace. */
  namespace: string;
  messages: Message[];
  calls: ToolCall[];
  notices: Notice[];
  pauses: SessionState['pauses'];
}

/** A sealed piece. It is written once and never changes. */
export interface Piece extends Leaving {
  level: number;
  /** Older pieces, oldest first. */
  before: PieceRef[];
  /** Mutations of runs that a reset abandoned. Their records answer equal calls, too. */
  left?: readonly ToolCall[];
}

/** The part of a state that leaves the run. */
export function leavingOf(state: SessionState): Leaving {
  return {
    namespace: state.namespace,
    messages: state.transcript.slice(unsealedFrom(state)),
    calls: state.calls.slice(0, sealedCalls(state)),
    notices: [...state.notices],
    pauses: state.pauses.filter(isOver),
    ...notesOf([state]),
  };
}

/** Merges the message notes of several states or pieces. */
export function notesOf(parts: readonly MessageNotes[]): MessageNotes {
  const notes: MessageNotes = {};
  for (const name of MESSAGE_NOTES) {
    const all = parts.flatMap((part) => Object.entries(part[name] ?? {}));
    if (all.length > 0) notes[name] = Object.fromEntries(all);
  }
  return notes;
}
