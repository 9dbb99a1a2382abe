/** Undoing the effects of a session. */
import * as z from 'zod/mini';
import type { Actor } from './calls.ts';
import type { JsonValue } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';

/**
 * - `true`: the session's effects are undone, the last one first. A person approves each.
 * - `{ digest }`: the same, and who asks has approved the list of this digest, see {@link UndoPlan}. If the list is another
 *   one by then, a person approves each.
 * - `false`: what has not been undone yet stays.
 */
export type UndoInput = boolean | { digest: string };

export const undoInput: LazySchema<UndoInput> = lazySchema(() =>
  z.union([z.boolean(), z.object({ digest: z.string().check(z.minLength(1)) })]),
);

/** What would be undone, in this order. */
export interface UndoPlan {
  /** Of the list: pass it on to approve the list. */
  digest: string;
  steps: UndoStep[];
}

/** An effect that has happened, or may have. */
export interface UndoStep {
  callId: string;
  tool: string;
  /** `null` when it is not known any more. */
  args: JsonValue;
  output: JsonValue;
  /** `tool`: its `compensate` runs. `person`: nothing does, and a person has to look. */
  by: 'tool' | 'person';
  /** Why a person has to. */
  reason?: string;
  /** Of a call that another agent has answered: the session of that sub-agent. What it has done follows on the list. */
  child?: string;
  /** The session of a sub-agent that has done it: it is undone there. Absent: this session has done it. */
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
  /** The digest that was approved of the effects of earlier runs. */
  seen?: string;
  /** The effects of earlier runs are undone, too, and those of a fork's origin are left to people. */
  whole?: true;
  /** How many effects of earlier runs are still to be undone. Absent: nobody has looked. */
  earlier?: number;
  /** The compensations are among the calls. Those of effects of earlier runs follow in portions. */
  begun?: true;
  /** Of a rewind: the calls of the reply that was open at the checkpoint. They go on afterwards. */
  batch?: string[];
  /** The session was cancelled meanwhile: its other effects are undone next. */
  next?: Undo;
  /** Somebody gave it up: what has not begun is not undone. */
  givenUp?: true;
}
