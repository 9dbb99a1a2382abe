import type { Duration } from '@temporalio/common';
import type { FlexibleSchema, ToolExecutionOptions, ToolResultPart } from 'ai';
import { PerdureError } from '../contract/errors.ts';
import type { Effect, IdempotencyScope } from '../contract/manifest.ts';
import { choiceProblem, countProblem, durationProblem, kindProblem, nameProblem } from './checks.ts';
import { contextSchemaProblem, schemaProblem } from './input-schema.ts';

/** The second argument of a tool's functions. */
export interface ToolContext<CONTEXT = unknown> extends Omit<ToolExecutionOptions, 'abortSignal'> {
  /** The session's id. */
  sessionId: string;
  /** Our id of the call: the same over all its attempts. */
  callId: string;
  /**
   * Stable over retries, resumes and verification; derived from the session, the tool and the arguments that
   * the tool names. Pass it to a provider that honours such keys. It is never shown to the model.
   */
  idempotencyKey: string;
  /** 1, 2, …: of a mutation the dispatch (each follows a recorded *absent*), otherwise Temporal's attempt. */
  attempt: number;
  /**
   * Aborts at the tool's time-out, at a cancelled call, when the worker shuts down, and for a mutation before the
   * server may give the call to another worker: when it has not been heard for the agent's `heartbeat`. Pass it to the
   * request that has the effect.
   */
  abortSignal: AbortSignal;
  /**
   * Makes sure that this call is still ours, by asking Temporal unless it was known within the last 100 ms, and
   * throws `FENCED` when it is not: the call was cancelled or has timed out, or a worker that was thought dead woke up.
   * Call it just before the request that has the effect.
   */
  fence: () => Promise<void>;
  /** The session's scratchpad directory, when it has one. */
  scratchpadRoot?: string;
  /**
   * The session's context, as the tool's `context` schema reads it, or else the agent's. It is empty when the session was
   * started without one. Let the tool touch nothing of another tenant than `context.tenant`.
   */
  context: CONTEXT;
}

/** The second argument of `needsApproval`. Its list of messages is empty. */
export interface ApprovalOptions<CONTEXT = unknown>
  extends Pick<ToolExecutionOptions, 'toolCallId' | 'messages'> {
  /** As {@link ToolContext.context}. */
  context: CONTEXT;
}

/** The result of `verify`; see {@link ToolOptions.verify}. */
export type Verification<OUTPUT> =
  | { outcome: 'landed'; output: OUTPUT }
  | { outcome: 'absent'; reason?: string }
  | { outcome: 'unknown'; reason?: string };

/** What makes two calls of a tool the same effect. */
export type Idempotency<INPUT, CONTEXT = unknown> =
  | {
      /**
       * Which equal calls are one effect: `call` none, `message` those in answer to one message of the user, `session` those
       * of one session, `global` (for `mutate`) those of all sessions. Default: `message` for `mutate`, `call` otherwise.
       */
      scope?: IdempotencyScope;
      /** Of scope `global`: how long the record of an effect answers equal calls. Default: one day. */
      ttl?: Duration;
      /** The arguments that are the identity; default: all. */
      args?: readonly (keyof INPUT & string)[];
    }
  /** Returns the identity within the session, e.g. an order's number: the scope is `session`. */
  | ((input: INPUT, options: { context: CONTEXT }) => string);

/** The argument of `toModelOutput`. */
export interface ModelOutputOptions<INPUT, OUTPUT> {
  toolCallId: string;
  input: INPUT;
  output: OUTPUT;
}

/** A tool in the AI SDK's shape, plus what makes it safe to run durably. */
export interface ToolOptions<INPUT, OUTPUT, CONTEXT = unknown> {
  /** What the model is told of the tool. */
  description?: string;
  /** A zod (3 or 4) or standard schema, or AI SDK `jsonSchema()`, of an object. */
  inputSchema: FlexibleSchema<INPUT>;
  /** What a call does to the world. Default: `mutate`, the safe choice. */
  effect?: Effect;
  /**
   * The schema of the session's context, as far as this tool needs it: it gives `context` its type. A session whose context
   * does not fit it does not start.
   */
  context?: FlexibleSchema<CONTEXT>;
  idempotency?: Idempotency<INPUT, CONTEXT>;
  /**
   * Whether a person must approve a call first. Called once, when the model asks for the call. A throw asks a person,
   * and so does no answer: within ten seconds for all calls of a reply, or until somebody stops it.
   */
  needsApproval?:
    | boolean
    | ((input: INPUT, options: ApprovalOptions<CONTEXT>) => boolean | PromiseLike<boolean>);
  /** What happens to an approval that nobody gives. Default: it waits for ever; once it expires it rejects. */
  approval?: { expires?: Duration; onExpiry?: 'approve' | 'reject' };
  /** How long one attempt may take. Default: one minute. */
  timeout?: Duration;
  /**
   * How long an attempt may still land after its `abortSignal` or its worker's death. Default: 5 seconds. A tool that
   * heeds neither signal nor `fence` may land until its `timeout`: then give it that long.
   */
  settle?: Duration;
  /**
   * Dispatches of a mutation (each after a recorded *absent*), or attempts when a worker is lost. Default: 3. What
   * a worker's orderly shutdown cuts short does not count.
   */
  maxAttempts?: number;
  /**
   * Runs the call. Its result must be JSON; a large one is shortened with a notice.
   *
   * On throw: of a `read` or `idempotent` the model is told the message. Of a `mutate` nobody can know whether the
   * effect happened, so the call is *unknown*: it settles, is verified, and is never simply run again. Throw
   * {@link NotAttemptedError} when it certainly did not happen.
   *
   * On a lost worker: a `read` or `idempotent` is attempted again; a `mutate` is *unknown*.
   * On replay of the workflow: not called; the recorded result stands.
   */
  execute(input: INPUT, context: ToolContext<CONTEXT>): OUTPUT | PromiseLike<OUTPUT> | AsyncIterable<OUTPUT>;
  /**
   * Tells what became of a call of which no result was recorded, by looking, without changing anything.
   *
   * - `landed`: it happened; `output` stands for its result.
   * - `absent`: it did not happen **and will not**; the call is dispatched again.
   * - `unknown`: cannot be told; the call waits for a person.
   *
   * Called after the settle time, with the same key as `execute`. A throw or time-out is tried twice more and
   * then is `unknown`. Without `verify` a lost mutation goes straight to a person.
   */
  verify?(
    input: INPUT,
    context: ToolContext<CONTEXT>,
  ): Verification<OUTPUT> | PromiseLike<Verification<OUTPUT>>;
  /**
   * What the model is sent in place of the output, as the AI SDK has it. It is called once for each output, and recorded
   * with it. On throw, or with a value that is no such output, the model is sent the output.
   */
  toModelOutput?(
    options: ModelOutputOptions<INPUT, OUTPUT>,
  ): ToolResultPart['output'] | PromiseLike<ToolResultPart['output']>;
}

/** A checked tool definition, accepted by `defineAgent` and, being the AI SDK's shape, by the AI SDK. */
export type DefinedTool<INPUT = unknown, OUTPUT = unknown, CONTEXT = unknown> = ToolOptions<
  INPUT,
  OUTPUT,
  CONTEXT
> & {
  /** `plain`: a tool of the AI SDK of which nobody has said what its calls do. */
  readonly perdure: 'tool' | 'plain';
};

/**
 * Thrown by a tool to say that its effect certainly did not happen: the connection was refused, the input was
 * declined. It is the only error of a mutation that is taken as *absent* without asking `verify`.
 */
export class NotAttemptedError extends PerdureError {
  override readonly name: string = 'NotAttemptedError';
  /** Whether the call is dispatched again (default), or the model is told at once. */
  readonly retryable: boolean;

  constructor(message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super('NOT_ATTEMPTED', message, options.cause === undefined ? {} : { cause: options.cause });
    this.retryable = options.retryable ?? true;
  }
}

/**
 * Defines a tool.
 *
 * @throws PerdureError `INVALID_DEFINITION` naming the field and what to write.
 */
export function defineTool<INPUT, OUTPUT, CONTEXT = unknown>(
  options: ToolOptions<INPUT, OUTPUT, CONTEXT>,
): DefinedTool<INPUT, OUTPUT, CONTEXT> {
  const problem = nameProblem('', options, [...OWN_NAMES, ...AI_SDK_NAMES]);
  if (problem !== null) throw new PerdureError('INVALID_DEFINITION', problem);
  return checkedTool(options);
}

/** {@link defineTool} without the check of names: a plain tool of the AI SDK has the names of its version. */
export function checkedTool<INPUT, OUTPUT, CONTEXT>(
  options: ToolOptions<INPUT, OUTPUT, CONTEXT>,
  perdure: DefinedTool['perdure'] = 'tool',
): DefinedTool<INPUT, OUTPUT, CONTEXT> {
  const problem = toolProblem(options);
  if (problem !== null) throw new PerdureError('INVALID_DEFINITION', problem);
  return { ...options, perdure };
}

const ANNOTATIONS: readonly string[] = [
  'effect',
  'idempotency',
  'verify',
  'needsApproval',
  'approval',
  'timeout',
  'settle',
  'maxAttempts',
];

/**
 * What the calls of an imported tool do to the world: an {@link Effect}, or an object that has it beside other options of
 * {@link defineTool}.
 */
export type ToolEffect =
  | Effect
  | ({ effect: Effect } & Pick<
      ToolOptions<never, unknown, never>,
      'idempotency' | 'verify' | 'needsApproval' | 'approval' | 'timeout' | 'settle' | 'maxAttempts'
    >);

/** A tool with what an agent says of it. @throws PerdureError `INVALID_DEFINITION` */
export function annotatedTool(
  tool: ToolOptions<unknown, unknown>,
  effect: ToolEffect,
): DefinedTool<unknown, unknown> {
  const options = typeof effect === 'string' ? { effect } : effect;
  const problem = nameProblem('', options, ANNOTATIONS);
  if (problem !== null) throw new PerdureError('INVALID_DEFINITION', problem);
  return checkedTool({ ...tool, ...(options as Partial<ToolOptions<unknown, unknown>>) });
}

const OWN_NAMES: readonly string[] = [
  'description',
  'inputSchema',
  'context',
  'effect',
  'idempotency',
  'needsApproval',
  'approval',
  'timeout',
  'settle',
  'maxAttempts',
  'execute',
  'verify',
  'perdure',
];

/** Other fields of an AI SDK tool, for `defineTool({ ...tool, effect: 'read' })`. */
const AI_SDK_NAMES: readonly string[] = [
  'type',
  'title',
  'outputSchema',
  'inputExamples',
  'providerOptions',
  'metadata',
  'strict',
  'onInputStart',
  'onInputDelta',
  'onInputAvailable',
  'toModelOutput',
];

const EFFECTS: readonly string[] = ['read', 'idempotent', 'mutate'];
const SCOPES: readonly string[] = ['call', 'message', 'session', 'global'];

/** The problem of a tool, with what to write instead, or `null`. */
function toolProblem<INPUT, OUTPUT, CONTEXT>(options: ToolOptions<INPUT, OUTPUT, CONTEXT>): string | null {
  const { effect = 'mutate', idempotency, inputSchema } = options;
  if (typeof options.execute !== 'function') {
    return 'execute is missing: write execute: async (input, { idempotencyKey }) => …';
  }
  if (inputSchema === undefined || inputSchema === null) {
    return 'inputSchema is missing: write inputSchema: z.object({ … })';
  }
  const kind =
    choiceProblem('effect', effect, EFFECTS) ??
    contextSchemaProblem(options.context) ??
    kindProblem('description', options.description, 'a text');
  if (kind !== null) return kind;
  if (options.verify !== undefined && typeof options.verify !== 'function') {
    return "verify is not a function: write verify: async (input, { idempotencyKey }) => ({ outcome: 'landed', output })";
  }
  if (options.verify !== undefined && effect !== 'mutate') {
    return `verify is only for effect 'mutate', but this tool is '${effect}': remove verify, or write effect: 'mutate'`;
  }
  if (typeof idempotency === 'object' && idempotency?.scope === 'global' && effect !== 'mutate') {
    return `idempotency.scope 'global' is only for effect 'mutate', but this tool is '${effect}': remove it, or write effect: 'mutate'`;
  }
  const { maxAttempts, timeout, settle, approval } = options;
  return (
    approvalProblem(options) ??
    idempotencyProblem(idempotency) ??
    countProblem('maxAttempts', maxAttempts) ??
    durationProblem('timeout', timeout) ??
    durationProblem('settle', settle, 0) ??
    durationProblem('approval.expires', approval?.expires) ??
    choiceProblem('approval.onExpiry', approval?.onExpiry, ['approve', 'reject']) ??
    schemaProblem(options)
  );
}

/** Only `true` and a function ask a person, so that anything else would let each call run. */
function approvalProblem(options: { needsApproval?: unknown; approval?: object }): string | null {
  const { needsApproval, approval } = options;
  if (!['undefined', 'boolean', 'function'].includes(typeof needsApproval)) {
    return `needsApproval is ${JSON.stringify(needsApproval)}: write true, false, or a function of the input`;
  }
  if (approval !== undefined && needsApproval === undefined) {
    return 'approval has no effect without needsApproval: write needsApproval';
  }
  return nameProblem('approval.', approval, ['expires', 'onExpiry']);
}

/** Without a right identity all calls of a tool could count as one, of which only the first happens. */
function idempotencyProblem(idempotency: unknown): string | null {
  if (idempotency === undefined || typeof idempotency === 'function') return null;
  if (typeof idempotency !== 'object' || idempotency === null || Array.isArray(idempotency)) {
    return `idempotency is ${JSON.stringify(idempotency)}: write { scope, args }, or a function of the input`;
  }
  const { scope, ttl, args } = idempotency as Exclude<
    Idempotency<unknown>,
    (input: never, options: never) => string
  >;
  const named: unknown = args;
  const areNames =
    named === undefined ||
    (Array.isArray(named) && named.length > 0 && named.every((name) => typeof name === 'string'));
  return (
    nameProblem('idempotency.', idempotency, ['scope', 'ttl', 'args']) ??
    choiceProblem('idempotency.scope', scope, SCOPES) ??
    durationProblem('idempotency.ttl', ttl) ??
    (ttl === undefined || scope === 'global'
      ? null
      : "idempotency.ttl is only for scope 'global': remove it, or write scope: 'global'") ??
    (areNames
      ? null
      : `idempotency.args is ${JSON.stringify(named)}: write names of arguments, such as ['orderId']`)
  );
}

/** The part that two calls of a tool share when they are one effect. */
export function scopeOf(tool: DefinedTool): IdempotencyScope {
  if (typeof tool.idempotency === 'function') return 'session';
  if (tool.perdure === 'plain') return 'call';
  return tool.idempotency?.scope ?? ((tool.effect ?? 'mutate') === 'mutate' ? 'message' : 'call');
}
