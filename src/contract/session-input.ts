/** How a session is started, and how it ends. */
import * as z from 'zod/mini';
import { contextSchema } from './context.ts';
import {
  type BudgetLimitsInput,
  budgetLimitsSchema,
  jsonValue,
  type SendInput,
  sendSchema,
} from './inputs.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';
import type { Manifest } from './manifest.ts';
import { type OriginInput, originSchema } from './origin.ts';
import { poolIdSchema } from './pool.ts';
import type { SessionState } from './state.ts';
import { type ParentLink, parentSchema } from './tree.ts';

/** Starts a `global` effect. */
export interface EffectInput {
  tool: string;
  args: JsonValue;
  argsDigest: string;
  idempotencyKey: string;
  /** The call that requested the effect, as `session/call`. */
  requestedBy: string;
  /** The agent's manifest with this tool only. */
  manifest: Manifest;
  searchAttributes: string[];
  /** Why the effect may have happened already. The call then settles and is verified before it is dispatched. */
  doubt?: string | undefined;
}

type DescribedAgent = Pick<EffectInput, 'manifest' | 'searchAttributes'>;

const manifestSchema = lazySchema(() =>
  z.custom<Manifest>((value) => (value as Manifest | null)?.schema === 1, 'unknown manifest version'),
);

const effectSchema = lazySchema(() =>
  z.object({
    tool: z.string(),
    // Unchanged, because a copy would lose a key such as `__proto__`, which is in the digest.
    args: z.custom<JsonValue>((value) => jsonValue().safeParse(value).success),
    argsDigest: z.string(),
    idempotencyKey: z.string(),
    requestedBy: z.string(),
    manifest: manifestSchema(),
    searchAttributes: z.array(z.string()),
    doubt: z.optional(z.string()),
  }),
);

const describedSchema: LazySchema<DescribedAgent> = lazySchema(() =>
  z.object({ manifest: manifestSchema(), searchAttributes: z.array(z.string()) }),
);

const carriedSchema = lazySchema(() =>
  z.custom<SessionState>(
    (value) => (value as SessionState | null)?.schema === 1,
    'a newer version wrote it: update the workers',
  ),
);

/** The argument of the session's workflow. */
export const sessionInputSchema: LazySchema<SessionInput> = lazySchema(() =>
  z.object({
    agent: z.string().check(z.minLength(1), z.maxLength(64)),
    message: z.optional(sendSchema()),
    mode: z.optional(z.enum(['chat', 'task'])),
    context: z.optional(contextSchema()),
    budget: z.optional(budgetLimitsSchema()),
    pool: z.optional(poolIdSchema()),
    scratchpadRoot: z.optional(z.string()),
    effect: z.optional(effectSchema()),
    origin: z.optional(originSchema()),
    parent: z.optional(parentSchema()),
    authors: z.optional(z.array(z.string())),
    described: z.optional(describedSchema()),
    carried: z.optional(carriedSchema()),
  }),
);

export interface SessionInput {
  agent: string;
  message?: SendInput | undefined;
  mode?: 'chat' | 'task' | undefined;
  context?: JsonObject | undefined;
  budget?: BudgetLimitsInput | undefined;
  /** The pool that it shares with other sessions. */
  pool?: string | undefined;
  scratchpadRoot?: string | undefined;
  effect?: EffectInput | undefined;
  origin?: OriginInput | undefined;
  /** The call of another session that has started it. */
  parent?: ParentLink | undefined;
  /** Sub-agents only: the people who have sent or edited messages of the sessions above. They shaped its task. */
  authors?: string[] | undefined;
  /**
   * Sub-agents only: the manifest, if the worker that starts the session has the agent. The session then need not ask.
   */
  described?: Pick<EffectInput, 'manifest' | 'searchAttributes'> | undefined;
  /** The state that one run passes to the next. Only a continued run has it. */
  carried?: SessionState | undefined;
}

/** What a session returns when it ends. */
export interface SessionResult<OUTPUT = unknown> {
  status: 'completed' | 'cancelled';
  text: string;
  turns: number;
  /** The value of the last answer, if the agent has an `output` schema. A cancelled session has none. */
  output?: OUTPUT;
}
