/** Undoing the effects of a session. */
import * as z from 'zod/mini';
import type { Actor } from './calls.ts';
import type { JsonValue } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';

/**
 * - `true`: the session's effects are undone, the last one first. A person approves each.
 * - `{ digest }`: the same, but whoever asks has approved the list with this digest, see {@link UndoPlan}. If the list
 *   has changed by then, a person approves each.
 * - `false`: gives an undo up. What has not been undone yet stays.
 */
export type UndoInput = boolean | { digest: string };

export const undoInput: LazySchema<UndoInput> = lazySchema(() =>
  z.union([z.boolean(), z.object({ digest: z.string().check(z.minLength(1)) })]),
);

/** What would be undone, in this order. */
export interface UndoPlan {
  /** The digest of the list. Pass it on to approve the list. */
  digest: string;
  steps: UndoStep[];
}

/** An effect that has happened or may have happened. */
export interface UndoStep {
  callId: string;
  tool: string;
  /** `null` when the arguments are no longer known. */
  args: JsonValue;
  output: JsonValue;
  /** `tool`: the tool's `compensate` undoes it. `person`: no code undoes it, so a person must look. */
  by: 'tool' | 'person';
  /** Why a person must look. */
  reason?: string;
  /** Set if a sub-agent answered the call: the session of that sub-agent. Its own effects follow on the list. */
  child?: string;
  /** Set if a sub-agent caused the effect: its session, which undoes the effect. Absent: this session caused it. */
  session?: string;
}

/** A step with the key of its effect. */
export interface KeyedStep extends UndoStep {
  idempotencyKey: string;
}

/** A request to undo effects. */
export interface Undo {
  by: Actor;
  verified?: true;
  at: string;
  /** Ids of the calls whose effects are on the list that was approved. */
  approved?: string[];
  /** The approved digest of the effects of earlier runs. */
  seen?: string;
  /** The effects of earlier runs are undone, too. The effects of a fork's origin are left to people. */
  whole?: true;
  /** How many effects of earlier runs are left to undo. Absent: nobody has looked yet. */
  earlier?: number;
  /** The compensations have been added to the calls. Those for earlier runs follow in portions. */
  begun?: true;
  /** Rewind only: the calls of the reply that was open at the checkpoint. They go on after the undo. */
  batch?: string[];
  /** The session was cancelled meanwhile: its other effects are undone next. */
  next?: Undo;
  /** Somebody gave up the undo: compensations that have not begun do not run. */
  givenUp?: true;
}
