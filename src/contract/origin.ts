/** Where a session comes from, when it did not start empty: a checkpoint of another session, or of its own past. */
import * as z from 'zod/mini';
import type { Actor } from './calls.ts';
import { type EditInput, editSchema } from './edit.ts';
import type { JsonValue } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';
import { type ContentRef, contentSchema } from './thread.ts';

/**
 * A checkpoint that a session starts from.
 * - `fork`: another session. Its keys are new; what was open at the checkpoint waits for a person.
 * - `rewind`: the same session, taken back. Its keys stay, and what happened after the checkpoint answers them.
 */
export interface Origin {
  kind: 'fork' | 'rewind';
  sessionId: string;
  runId: string;
  /** The completed workflow task that is the checkpoint. */
  eventId: number;
  by: Actor;
  reason: string;
  /** Of a rewind: the run that the session leaves, which may be a later one than the checkpoint's. */
  leaves?: string | undefined;
  /** Where an {@link ArchivedOrigin} is, when the server has the checkpoint's history no more. */
  archived?: ContentRef | undefined;
}

/** {@link Origin} as it travels in the session's input, with what is to be changed at the start. */
export interface OriginInput extends Origin {
  edits?: EditInput | undefined;
}

export const originSchema: LazySchema<OriginInput> = lazySchema(() =>
  z.object({
    kind: z.enum(['fork', 'rewind']),
    sessionId: z.string().check(z.minLength(1)),
    runId: z.string().check(z.minLength(1)),
    eventId: z.int().check(z.positive()),
    by: z.string(),
    reason: z.string(),
    leaves: z.optional(z.string().check(z.minLength(1))),
    archived: z.optional(contentSchema()),
    edits: z.optional(editSchema()),
  }),
);

/** An effect that happened after the checkpoint of a rewind: it answers its key in the session's new present. */
export interface CarriedEffect {
  callId: string;
  tool: string;
  idempotencyKey: string;
  /** Of scope `message`: number of the message that it answered. */
  message?: number;
  /** Of scope `message`: number of the message in answer to which an equal call was made after the rewind. */
  takenBy?: number;
  output: JsonValue;
  /** Why nobody knows whether it happened: an equal call settles and is verified before it is dispatched. */
  doubt?: string;
}
