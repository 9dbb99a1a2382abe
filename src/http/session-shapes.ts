/** The bodies of requests about sessions, made of the contract's schemas. */
import * as z from 'zod/mini';
import type { MessagePart } from '../client/index.ts';
import type { Decision, Resolution } from '../contract/calls.ts';
import { contextSchema, TENANT_LENGTH } from '../contract/context.ts';
import { type EditInput, editSchema } from '../contract/edit.ts';
import {
  type BudgetLimitsInput,
  budgetLimitsSchema,
  budgetSchema,
  decisionSchema,
  pauseSchema,
  resolutionSchema,
  resumeSchema,
  type SendInput,
  sendSchema,
} from '../contract/inputs.ts';
import type { JsonObject } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import { poolIdSchema, poolSetSchema } from '../contract/pool.ts';
import { MEDIA_TYPE } from '../contract/values.ts';
import { RESERVED_PREFIXES } from '../contract/workflow-ids.ts';
import { noted, notes, SEARCHABLE } from './shapes.ts';
import { cancelBodySchema } from './undo.ts';

const text = z.string().check(z.minLength(1));
const agent = z.string().check(z.minLength(1), z.maxLength(64));
/** The id of a new session. */
const newId = noted({
  pattern: SEARCHABLE.replace('^', `^(?!\\.{1,2}$|${RESERVED_PREFIXES.join('|')})(?=.*\\S)`),
  maxLength: LIMIT.sessionId,
});
const checkpoint = noted({ pattern: '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]{0,9}$' });
const actor = z.string().check(z.minLength(1), z.maxLength(200));

/** Base64, or the URL of a file that the provider fetches. */
const data = noted({
  pattern: '^(?:[A-Za-z0-9+/]+={0,2}|https?://(?:[A-Za-z0-9]+\\.)*[A-Za-z]+(?::[0-9]{1,4})?(?:/[^\\s]*)?)$',
});
const file = { mediaType: noted({ pattern: MEDIA_TYPE.source }), filename: z.optional(text) };
/** A message. Its files come as base64 or as URLs, and are stored. */
export interface MessageBody extends SendInput {
  parts?: MessagePart[] | undefined;
}
export const messageBodySchema: z.ZodMiniType<MessageBody> = z.extend(
  // `verified` follows from the token, never from the body.
  z.omit(sendSchema() as unknown as z.ZodMiniObject, { verified: true }),
  {
    parts: z.optional(
      z
        .array(
          z.discriminatedUnion('type', [
            z.object({ type: z.literal('text'), text: z.string() }),
            z.object({ type: z.literal('file'), data, ...file }),
          ]),
        )
        .check(z.minLength(1), z.maxLength(200)),
    ),
  },
) as unknown as z.ZodMiniType<MessageBody>;

/** The new content of a queued message. */
export type QueuedBody = Pick<MessageBody, 'text' | 'blocks' | 'parts' | 'by'>;
export const queuedBodySchema: z.ZodMiniType<QueuedBody> = z.pick(
  messageBodySchema as unknown as z.ZodMiniObject,
  { text: true, blocks: true, parts: true, by: true },
) as unknown as z.ZodMiniType<QueuedBody>;

interface Beginning {
  message?: MessageBody | undefined;
  context?: JsonObject | undefined;
  budget?: BudgetLimitsInput | undefined;
  pool?: string | undefined;
  scratchpadRoot?: string | undefined;
}

notes.add(contextSchema(), {
  properties: { tenant: { type: 'string', minLength: 1, maxLength: TENANT_LENGTH } },
});

const beginning = {
  message: z.optional(messageBodySchema),
  context: z.optional(contextSchema()),
  budget: z.optional(budgetLimitsSchema()),
  pool: z.optional(poolIdSchema()),
  scratchpadRoot: z.optional(text),
};

export interface StartBody extends Beginning {
  agent: string;
  id?: string | undefined;
  mode?: 'chat' | 'task' | undefined;
}
export const startBodySchema: z.ZodMiniType<StartBody> = z.object({
  agent,
  id: z.optional(newId),
  mode: z.optional(z.enum(['chat', 'task'])),
  ...beginning,
});

interface GoingOn extends Beginning {
  checkpointId: string;
  /** Default: the session's own agent. Another one is refused. */
  agent?: string | undefined;
  edits?: EditInput | undefined;
  by: string;
  reason: string;
}
const goingOn = {
  checkpointId: checkpoint,
  agent: z.optional(agent),
  edits: z.optional(editSchema()),
  by: actor,
  reason: text,
  ...beginning,
};

export interface RewindBody extends GoingOn {
  /** Without it nothing happens, and the error lists the effects that would stay. */
  confirm?: boolean | undefined;
  /** Undoes the later effects first. */
  undo?: boolean | undefined;
}
export const rewindBodySchema: z.ZodMiniType<RewindBody> = z.object({
  ...goingOn,
  confirm: z.optional(z.boolean()),
  undo: z.optional(z.boolean()),
});

export interface ForkBody extends GoingOn {
  id?: string | undefined;
}
export const forkBodySchema: z.ZodMiniType<ForkBody> = z.object({ ...goingOn, id: z.optional(newId) });

export type DecideBody = Decision & { by?: string | undefined; argsDigest: string };
export const decideBodySchema: z.ZodMiniType<DecideBody> = eachWith('decision', decisionSchema(), {
  argsDigest: text,
});

export type ResolveBody = Resolution & { by?: string | undefined; argsDigest: string; dispatchNo: number };
export const resolveBodySchema: z.ZodMiniType<ResolveBody> = eachWith('outcome', resolutionSchema(), {
  argsDigest: text,
  dispatchNo: z.int().check(z.nonnegative()),
});

/** Adds these fields, and `by`, to each object of the union, so that each is a closed object in the document. */
function eachWith<T>(
  kind: string,
  union: z.ZodMiniType<unknown>,
  fields: z.core.$ZodShape,
): z.ZodMiniType<T> {
  const { options } = (union as unknown as z.ZodMiniDiscriminatedUnion<z.ZodMiniObject[]>).def;
  const [first, ...rest] = options.map((option) => z.extend(option, { by: z.optional(actor), ...fields }));
  return z.discriminatedUnion(kind, [first as z.ZodMiniObject, ...rest]) as unknown as z.ZodMiniType<T>;
}

export const sessionIdSchema: z.ZodMiniType<{ id: string }> = z.object({ id: z.string() });

/** Schemas that have a name in the OpenAPI document. */
export const SESSION_BODIES: readonly [string, z.ZodMiniType<unknown>][] = [
  ['StartInput', startBodySchema],
  ['SendInput', messageBodySchema],
  ['QueuedInput', queuedBodySchema],
  ['BudgetLimits', budgetLimitsSchema()],
  ['DecideInput', decideBodySchema],
  ['ResolveInput', resolveBodySchema],
  ['PauseInput', pauseSchema()],
  ['ResumeInput', resumeSchema()],
  ['CancelInput', cancelBodySchema],
  ['EditInput', editSchema()],
  ['BudgetInput', budgetSchema()],
  ['PoolInput', poolSetSchema()],
  ['ForkInput', forkBodySchema],
  ['RewindInput', rewindBodySchema],
];
