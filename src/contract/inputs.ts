/** What people and programs send to a session. The schemas check signals and updates from clients in any language. */
import * as z from 'zod/mini';
import type { SeenCall, SeenDispatch } from './calls.ts';
import type { JsonValue } from './json.ts';
import { type LazySchema, lazySchema } from './lazy-schema.ts';
import { type MessageBlock, messageBlocksSchema } from './messages.ts';
import { type UndoInput, undoInput } from './undo.ts';

const actor = z.optional(z.string().check(z.maxLength(200)));
export const jsonValue: LazySchema<JsonValue> = lazySchema(() => z.json());
/** Whether the sender has verified `by`. */
const verified = z.optional(z.literal(true));

/** Excludes the ids that the session itself gives. It would take a client's message with such an id for its own. */
const CHOSEN_ID = /^(?!msg_\d+$)/;

/** Whether a client may have chosen a message's id: the session itself does not give ids of this form. */
export function isChosenId(id: string): boolean {
  return CHOSEN_ID.test(id);
}

/** A message to the agent. The session takes a message id once; a repeated message changes nothing. */
export const sendSchema: LazySchema<SendInput> = lazySchema(() =>
  z.object({
    text: z.string().check(z.minLength(1, 'text is empty')),
    blocks: z.optional(messageBlocksSchema()),
    id: z.optional(
      z
        .string()
        .check(
          z.minLength(1),
          z.maxLength(200),
          z.regex(CHOSEN_ID, 'the session itself uses ids of the form msg_<number>: choose another id'),
        ),
    ),
    mode: z.optional(z.enum(['queue', 'interrupt', 'aside'])),
    pin: z.optional(z.boolean()),
    by: actor,
    verified,
  }),
);
export interface SendInput {
  text: string;
  /** The whole message, if it has files. Lists then show `text` in its place. */
  blocks?: MessageBlock[] | undefined;
  id?: string | undefined;
  /**
   * `aside`: the model answers while calls are open, and later prompts leave out the question and the answer. Without
   * an open call the message is queued.
   */
  mode?: 'queue' | 'interrupt' | 'aside' | undefined;
  /** The model always sees the message word for word: no summary replaces it. */
  pin?: boolean | undefined;
  by?: string | undefined;
  /** You have verified `by`: it is the user of your program's own log-in. Never take it from a client. */
  verified?: true | undefined;
}

const messageId = z.string().check(z.minLength(1), z.maxLength(200));

/** Withdraws a queued message. */
export const withdrawSchema: LazySchema<WithdrawInput> = lazySchema(() =>
  z.object({ id: messageId, by: actor }),
);
export interface WithdrawInput {
  id: string;
  by?: string | undefined;
}

/** Replaces the text and the files of a queued message, which keeps its place. */
export const editMessageSchema: LazySchema<EditMessageInput> = lazySchema(() =>
  z.object({
    id: messageId,
    text: z.string().check(z.minLength(1, 'text is empty')),
    blocks: z.optional(messageBlocksSchema()),
    by: actor,
  }),
);
export interface EditMessageInput {
  id: string;
  text: string;
  /** The whole message, if it has files. Lists then show `text` in its place. */
  blocks?: MessageBlock[] | undefined;
  by?: string | undefined;
}

/** Pauses the session: it issues nothing new. `now` also cancels what is in flight; mutations settle first. */
export const pauseSchema: LazySchema<PauseInput> = lazySchema(() =>
  z.object({
    by: actor,
    reason: z.optional(z.string().check(z.maxLength(10_000))),
    now: z.optional(z.boolean()),
  }),
);
export interface PauseInput {
  by?: string | undefined;
  reason?: string | undefined;
  now?: boolean | undefined;
}

/** The reason of a pause by a chat's stop button. The chat's next message resumes the session. */
export const STOPPED_IN_CHAT = 'Stopped in the chat';

/** Continues after a pause or a wait. With `pausedFor`, only a session that is paused for this reason. */
export const resumeSchema: LazySchema<ResumeInput> = lazySchema(() =>
  z.object({ by: actor, pausedFor: z.optional(z.string().check(z.maxLength(10_000))) }),
);
export interface ResumeInput {
  by?: string | undefined;
  pausedFor?: string | undefined;
}

/** Ends the session, after a mutation in flight has settled. */
export const cancelSchema: LazySchema<CancelRequest> = lazySchema(() =>
  z.object({
    by: actor,
    verified,
    reason: z.optional(z.string().check(z.maxLength(10_000))),
    undo: z.optional(undoInput()),
    whole: z.optional(z.literal(true)),
  }),
);
export interface CancelInput {
  by?: string | undefined;
  /** You have verified `by`. Approvals of an undo need it where the tool asks for verified people. */
  verified?: true | undefined;
  reason?: string | undefined;
  undo?: UndoInput | undefined;
}
/** {@link CancelInput} as the session gets it. */
export interface CancelRequest extends CancelInput {
  /** See {@link Undo}. Absent in requests of older clients. */
  whole?: true | undefined;
}

/** Seals the session before a rewind: it starts no new call. A session is sealed at rest, so there is no `now`. */
export const sealSchema: LazySchema<PauseInput> = lazySchema(() =>
  z.object({ by: actor, reason: z.optional(z.string().check(z.maxLength(10_000))) }),
);

export const decisionSchema: LazySchema<DecideInput['decision']> = lazySchema(() =>
  z.discriminatedUnion('decision', [
    z.object({ decision: z.literal('approve') }),
    z.object({ decision: z.literal('edit'), args: jsonValue() }),
    z.object({ decision: z.literal('reject'), reason: z.optional(z.string()) }),
    z.object({ decision: z.literal('respond'), output: jsonValue() }),
  ]),
);

const digest = z.string().check(z.minLength(1));

/** A decision on a call that waits for approval, bound to the digest of its arguments. */
export const decideSchema: LazySchema<DecideInput> = lazySchema(() =>
  z.object({
    callId: z.string().check(z.minLength(1)),
    argsDigest: digest,
    by: actor,
    verified,
    decision: decisionSchema(),
  }),
);
export interface DecideInput extends SeenCall {
  by?: string | undefined;
  verified?: true | undefined;
  decision:
    | { decision: 'approve' }
    | { decision: 'edit'; args: JsonValue }
    | { decision: 'reject'; reason?: string | undefined }
    | { decision: 'respond'; output: JsonValue };
}

export const resolutionSchema: LazySchema<ResolveInput['resolution']> = lazySchema(() =>
  z.discriminatedUnion('outcome', [
    z.object({ outcome: z.literal('landed'), output: jsonValue() }),
    z.object({ outcome: z.literal('absent') }),
    z.object({ outcome: z.literal('failed'), reason: z.optional(z.string()) }),
  ]),
);

/** What became of one dispatch of a call whose outcome is unknown. */
export const resolveSchema: LazySchema<ResolveInput> = lazySchema(() =>
  z.object({
    callId: z.string().check(z.minLength(1)),
    argsDigest: digest,
    dispatchNo: z.int().check(z.nonnegative()),
    by: actor,
    verified,
    resolution: resolutionSchema(),
  }),
);
export interface ResolveInput extends SeenDispatch {
  by?: string | undefined;
  verified?: true | undefined;
  resolution:
    | { outcome: 'landed'; output: JsonValue }
    | { outcome: 'absent' }
    | { outcome: 'failed'; reason?: string | undefined };
}

/** A call that waits for a global effect. */
export const waiterSchema: LazySchema<WaiterInput> = lazySchema(() =>
  z.object({ sessionId: z.string().check(z.minLength(1)), callId: z.string().check(z.minLength(1)) }),
);
export interface WaiterInput {
  sessionId: string;
  callId: string;
}

/** The call whose effect has news. */
export const effectDoneSchema: LazySchema<EffectDoneInput> = lazySchema(() =>
  z.object({ callId: z.string().check(z.minLength(1)) }),
);
export interface EffectDoneInput {
  callId: string;
}

/** The pool that may grant something again. */
export const poolChangedSchema: LazySchema<PoolChangedInput> = lazySchema(() =>
  z.object({ pool: z.string().check(z.maxLength(200)) }),
);
export interface PoolChangedInput {
  pool: string;
}

/** Perdure's search attributes that the server knows. The session stops writing the others. */
export const searchAttributesSchema: LazySchema<SearchAttributesInput> = lazySchema(() =>
  z.object({ known: z.array(z.string().check(z.maxLength(200))).check(z.maxLength(100)) }),
);
export interface SearchAttributesInput {
  known: string[];
}

/** The key of the rate limit at which it is the session's turn: a provider's key, or a model. */
export const rateTurnSchema: LazySchema<RateTurnInput> = lazySchema(() => z.object({ key: z.string() }));
export interface RateTurnInput {
  key: string;
}

const cap = z.optional(z.number().check(z.nonnegative()));
const count = z.optional(z.int().check(z.nonnegative()));

/** Caps of a session's budget. An absent cap stays as it is, or does not exist. */
export const budgetLimitsSchema: LazySchema<BudgetLimitsInput> = lazySchema(() =>
  z.object({
    turns: count,
    toolCalls: count,
    tokens: count,
    usd: cap,
    activeMs: count,
  }),
);
export interface BudgetLimitsInput {
  turns?: number | undefined;
  toolCalls?: number | undefined;
  tokens?: number | undefined;
  usd?: number | undefined;
  activeMs?: number | undefined;
}

/** New caps, or permission to finish with a summary. The caps are raised by what that summary can cost at most. */
export const budgetSchema: LazySchema<BudgetInput> = lazySchema(() =>
  z.object({
    limits: z.optional(budgetLimitsSchema()),
    finish: z.optional(z.boolean()),
    by: actor,
  }),
);
export interface BudgetInput {
  limits?: BudgetLimitsInput | undefined;
  finish?: boolean | undefined;
  by?: string | undefined;
}

/** Replaces the payload of a signal that cannot be decoded. */
export const UNREADABLE = 'perdure:unreadable';

/** What is wrong with an input. `message` combines both fields. */
export interface InputProblem {
  /** The path of the field, such as `limits.usd`; `input` for the whole input. */
  field: string;
  problem: string;
  message: string;
}

export type ParsedInput<T> = { ok: true; value: T } | ({ ok: false } & InputProblem);

/** Checks an input from outside. Returns the first problem. */
export function parseInput<T>(schemaOf: LazySchema<T>, value: unknown): ParsedInput<T> {
  const parsed = schemaOf().safeParse(value, { error: problemOf });
  if (parsed.success) return { ok: true, value: parsed.data };
  const issue = parsed.error.issues[0];
  return { ok: false, ...inputProblem(issue?.path.join('.') || 'input', issue?.message ?? 'invalid') };
}

export function inputProblem(field: string, problem: string): InputProblem {
  return { field, problem, message: `${field}: ${problem}` };
}

/** Our own text for a problem: it enters the state, and zod's text depends on the loaded locale. */
function problemOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `${issue.input === undefined ? 'is missing: ' : ''}expected ${issue.expected}`;
    case 'invalid_value':
      return `expected one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    case 'too_small':
      return `the minimum is ${String(issue.minimum)}`;
    case 'too_big':
      return `the maximum is ${String(issue.maximum)}`;
    default:
      return 'matches none of the accepted shapes';
  }
}
