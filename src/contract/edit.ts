/** An edit of a session at rest: what a person may change in the transcript and the plan. */
import * as z from 'zod/mini';
import { type LazySchema, lazySchema } from './lazy-schema.ts';
import { type Message, messageSchema } from './messages.ts';
import { type PlanInput, planStepsSchema } from './plan.ts';

/** Replaces the end of the transcript, or the plan. */
export interface EditInput {
  /** `messages` replace the transcript from index `from` on. */
  transcript?: { from: number; messages: Message[] } | undefined;
  plan?: PlanInput['steps'] | undefined;
  scratchpadRoot?: string | undefined;
  by?: string | undefined;
  /** Why; kept in the session's notices. */
  reason?: string | undefined;
  /** The digest of the transcript that the person saw. If it has changed, the edit is refused. */
  digest?: string | undefined;
  /**
   * Like `digest`, but for everything that an edit can change: SHA-256 in hex of the canonical JSON of
   * `{ digest, plan, scratchpadRoot }`, where `digest` is the transcript's.
   */
  basis?: string | undefined;
}

export const editSchema: LazySchema<EditInput> = lazySchema(() =>
  z.object({
    transcript: z.optional(
      z.object({ from: z.int().check(z.nonnegative()), messages: z.array(messageSchema()) }),
    ),
    plan: z.optional(planStepsSchema()),
    scratchpadRoot: z.optional(z.string()),
    by: z.optional(z.string()),
    reason: z.optional(z.string().check(z.maxLength(10_000))),
    digest: z.optional(z.string()),
    basis: z.optional(z.string()),
  }),
);
