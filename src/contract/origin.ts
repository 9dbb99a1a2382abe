/** The checkpoint that a session starts from. */
import * as z from 'zod/mini';
import type { Actor, EffectRef } from './calls.ts';
import { type EditInput, editSchema } from './edit.ts';
import type { JsonValue } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';
import { type ContentRef, contentSchema } from './thread.ts';
import { type UndoInput, undoInput } from './undo.ts';

/**
 * - `fork`: from another session. Keys are new, and mutations that were open wait for a person.
 * - `rewind`: from the same session. Keys stay, and what happened after the checkpoint answers them.
 */
export interface Origin {
  kind: 'fork' | 'rewind';
  sessionId: string;
  runId: string;
  /** The completed workflow task that is the checkpoint. */
  eventId: number;
  by: Actor;
  /** The HTTP API, or your program, has verified `by`. */
  verified?: true | undefined;
  reason: string;
  /** Rewind only: the run that the session leaves. It may be later than the checkpoint's run. */
  leaves?: string | undefined;
  /** Where the {@link ArchivedOrigin} is, when the server no longer has the checkpoint's history. */
  archived?: ContentRef | undefined;
}

/** {@link Origin} in the session's input, with the edits to make at the start. */
export interface OriginInput extends Origin {
  edits?: EditInput | undefined;
  /** Rewind only: undo the effects since the checkpoint first. */
  undo?: UndoInput | undefined;
  /** Rewind to the end of a session only: `by` cancels the session, and all its effects are undone first. */
  cancel?: UndoInput | undefined;
}

export const originSchema: LazySchema<OriginInput> = lazySchema(() =>
  z.object({
    kind: z.enum(['fork', 'rewind']),
    sessionId: z.string().check(z.minLength(1)),
    runId: z.string().check(z.minLength(1)),
    eventId: z.int().check(z.positive()),
    by: z.string(),
    verified: z.optional(z.literal(true)),
    reason: z.string(),
    leaves: z.optional(z.string().check(z.minLength(1))),
    archived: z.optional(contentSchema()),
    edits: z.optional(editSchema()),
    undo: z.optional(undoInput()),
    cancel: z.optional(undoInput()),
  }),
);

/** An effect that happened after a rewind's checkpoint. Its record answers calls with its key. */
export interface CarriedEffect {
  callId: string;
  tool: string;
  idempotencyKey: string;
  /** Scope `message` only: the number of the message that it answered. */
  message?: number;
  /** Scope `message` only: the number of the message that requested an equal call after the rewind. */
  takenBy?: number;
  output: JsonValue;
  /** Why it may not have happened. An equal call settles and is verified before it is dispatched. */
  doubt?: string;
  /** A sub-agent was at work. An equal call waits for that sub-agent's session instead of settling. */
  open?: true;
  /** It was undone: its record answers no call, and an equal call gets another key. */
  undone?: true;
  /** Set on a compensation: the effect that it has undone. */
  compensates?: EffectRef;
}
