/** The bodies of requests about sessions: the contract's schemas of inputs, put together. */
import * as z from 'zod/mini';
import type { Decision, Resolution } from '../contract/calls.ts';
import { contextSchema } from '../contract/context.ts';
import { type EditInput, editSchema } from '../contract/edit.ts';
import {
  type BudgetLimitsInput,
  budgetLimitsSchema,
  budgetSchema,
  cancelSchema,
  decisionSchema,
  pauseSchema,
  resolutionSchema,
  resumeSchema,
  type SendInput,
  sendSchema,
} from '../contract/inputs.ts';
import type { JsonObject } from '../contract/json.ts';

const text = z.string().check(z.minLength(1));
const actor = z.string().check(z.minLength(1), z.maxLength(200));

/** What `start`, `fork` and `rewind` take of a session. */
interface Beginning {
  message?: SendInput | undefined;
  context?: JsonObject | undefined;
  budget?: BudgetLimitsInput | undefined;
  scratchpadRoot?: string | undefined;
}

const beginning = {
  message: z.optional(sendSchema()),
  context: z.optional(contextSchema()),
  budget: z.optional(budgetLimitsSchema()),
  scratchpadRoot: z.optional(text),
};

export interface StartBody extends Beginning {
  agent: string;
  id?: string | undefined;
  mode?: 'chat' | 'task' | undefined;
}
export const startBodySchema: z.ZodMiniType<StartBody> = z.object({
  agent: text,
  id: z.optional(text),
  mode: z.optional(z.enum(['chat', 'task'])),
  ...beginning,
});

/** What `fork` and `rewind` take. */
interface GoingOn extends Beginning {
  checkpointId: string;
  /** The session's own, which is the default: another is refused. */
  agent?: string | undefined;
  edits?: EditInput | undefined;
  by: string;
  reason: string;
}
const goingOn = {
  checkpointId: text,
  agent: z.optional(text),
  edits: z.optional(editSchema()),
  by: actor,
  reason: text,
  ...beginning,
};

export interface RewindBody extends GoingOn {
  /** Without it nothing is done, and the effects that would stay are told. */
  confirm?: boolean | undefined;
}
export const rewindBodySchema: z.ZodMiniType<RewindBody> = z.object({
  ...goingOn,
  confirm: z.optional(z.boolean()),
});

export interface ForkBody extends GoingOn {
  id?: string | undefined;
}
export const forkBodySchema: z.ZodMiniType<ForkBody> = z.object({ ...goingOn, id: z.optional(text) });

export type DecideBody = Decision & { by?: string | undefined; argsDigest: string };
export const decideBodySchema: z.ZodMiniType<DecideBody> = z.intersection(
  decisionSchema(),
  z.object({ by: z.optional(actor), argsDigest: text }),
) as z.ZodMiniType<DecideBody>;

export type ResolveBody = Resolution & { by?: string | undefined; argsDigest: string; dispatchNo: number };
export const resolveBodySchema: z.ZodMiniType<ResolveBody> = z.intersection(
  resolutionSchema(),
  z.object({ by: z.optional(actor), argsDigest: text, dispatchNo: z.int().check(z.nonnegative()) }),
) as z.ZodMiniType<ResolveBody>;

export const sessionIdSchema: z.ZodMiniType<{ id: string }> = z.object({ id: z.string() });

/** Schemas that the document names. */
export const SESSION_BODIES: readonly [string, z.ZodMiniType<unknown>][] = [
  ['StartInput', startBodySchema],
  ['SendInput', sendSchema()],
  ['BudgetLimits', budgetLimitsSchema()],
  ['DecideInput', decideBodySchema],
  ['ResolveInput', resolveBodySchema],
  ['PauseInput', pauseSchema()],
  ['ResumeInput', resumeSchema()],
  ['CancelInput', cancelSchema()],
  ['EditInput', editSchema()],
  ['BudgetInput', budgetSchema()],
  ['ForkInput', forkBodySchema],
  ['RewindInput', rewindBodySchema],
];
