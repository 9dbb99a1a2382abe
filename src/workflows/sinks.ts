import type { Sinks } from '@temporalio/workflow';
import type { Message, Position } from '../contract/messages.ts';
import type { Leaving } from '../contract/piece.ts';
import type { SessionEvents } from '../contract/telemetry.ts';
import type { ContentRef } from '../contract/thread.ts';

/** A part of a transcript that the workflow hands to the worker's memory, where model calls find it. */
export interface TranscriptPiece {
  from: Position;
  to: Position;
  messages: Message[];
}

/** A mutating call that the workflow issues, with the mark in its input. */
export interface IssuedCall {
  activityId: string;
  mark: number;
}

/** What leaves a run. It is handed over so that the activity which stores it need not read the history. */
export interface HandedPast {
  /** The mark in the activity's input. */
  mark: number;
  newest?: ContentRef;
  leaving: Leaving;
}

/** What the workflow tells its worker. It leaves no trace in the history. */
export interface PerdureSinks extends Sinks {
  perdure: {
    remember(piece: TranscriptPiece): void;
    forget(): void;
    issued(call: IssuedCall): void;
    leaves(past: HandedPast): void;
    /** The session writes these search attributes in the present task. */
    writes(searchAttributes: string[]): void;
    /** For traces and metrics. */
    happened(events: SessionEvents): void;
  };
}
