/** An edit of a session at rest: what a person may change of the transcript and the plan. */
import * as z from 'zod/mini';
import { type LazySchema, lazySchema } from './lazy-schema.ts';
import type { Message } from './messages.ts';
import { type PlanInput, planStepsSchema } from './plan.ts';

/** Replaces the end of the transcript, or the plan. */
export interface EditInput {
  /** The messages from index `from` on are replaced by these. */
  transcript?: { from: number; messages: Message[] } | undefined;
  plan?: PlanInput['steps'] | undefined;
  scratchpadRoot?: string | undefined;
  by?: string | undefined;
  /** Why; kept in the session's notices. */
  reason?: string | undefined;
  /** The digest of the transcript that the person saw. If it has changed, the edit is refused. */
  digest?: string | undefined;
  /**
   * The same for everything that an edit can change: SHA-256 in hex of the canonical JSON of
   * `{ digest, plan, scratchpadRoot }`, where `digest` is the transcript's.
   */
  basis?: string | undefined;
}

const metadata = z.optional(z.record(z.string(), z.json()));
const block = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('text'), text: z.string(), metadata }),
  z.object({ kind: z.literal('reasoning'), text: z.string(), metadata }),
  z.object({ kind: z.literal('tool_call'), id: z.string(), name: z.string(), args: z.json(), metadata }),
  z.object({
    kind: z.literal('tool_result'),
    call_id: z.string(),
    name: z.string(),
    content: z.json(),
    model_output: metadata,
    is_error: z.boolean(),
  }),
]);

export const messageSchema: LazySchema<Message> = lazySchema(
  () =>
    z.object({
      id: z.string().check(z.minLength(1)),
      role: z.enum(['user', 'assistant', 'tool']),
      created_at: z.iso.datetime(),
      blocks: z.array(block),
    }) as z.ZodMiniType<Message>,
);

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
