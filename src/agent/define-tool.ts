import type { Duration } from '@temporalio/common';
import type { FlexibleSchema, ToolExecutionOptions, ToolResultPart } from 'ai';
import type { BuiltIn } from '../contract/built-in.ts';
import { PerdureError } from '../contract/errors.ts';
import type { JsonValue } from '../contract/json.ts';
import type { Effect, IdempotencyScope } from '../contract/manifest.ts';
import type { AtEnd } from '../contract/tree.ts';
import { choiceProblem, countProblem, durationProblem, kindProblem, nameProblem } from './checks.ts';
import { type Compensation, compensationProblem } from './compensation.ts';
import { contextSchemaProblem, schemaProblem } from './input-schema.ts';
import type { ToolContext, Verification } from './tool-context.ts';

/** The second argument of `needsApproval`. Its list of messages is empty. */
export interface ApprovalOptions<CONTEXT = unknown>
  extends Pick<ToolExecutionOptions, 'toolCallId' | 'messages'> {
  /** As {@link ToolContext.context}. */
  context: CONTEXT;
}

/** What makes two calls of a tool the same effect. */
export type Idempotency<INPUT, CONTEXT = unknown> =
  | {
      /**
       * Which equal calls are one effect. `call`: none. `message`: those in answer to one message of the user. `session`:
       * those of one session. `global` (for `mutate`): those of all sessions. Default: `message` for `mutate`, otherwise
       * `call`.
       */
      scope?: IdempotencyScope;
      /** For scope `global`: how long the record of an effect answers equal calls. Default: one day. */
      ttl?: Duration;
      /** The arguments that identify the effect. Default: all. */
      args?: readonly (keyof INPUT & string)[];
    }
  /** Returns the identity of the effect within the session, such as an order's number. The scope is `session`. */
  | ((input: INPUT, options: { context: CONTEXT }) => string);

/** The argument of `toModelOutput`. */
export interface ModelOutputOptions<INPUT, OUTPUT> {
  toolCallId: string;
  input: INPUT;
  output: OUTPUT;
}

/** A tool in the AI SDK's shape, plus what makes it safe to run durably. */
/** How people approve the calls of a tool. */
export interface ApprovalRules {
  /** How long a call waits for people. Default: for ever. */
  expires?: Duration;
  /** What happens if nobody decides in that time. Default: `reject`. */
  onExpiry?: 'approve' | 'reject';
  /** How many people must approve, 1 to 10. Each is another one. One is enough to reject. Default: 1. */
  people?: number;
  /** Nobody approves who has sent or edited messages of the session, or taken it back. */
  byAnother?: true;
  /** With `people` or `byAnother`: names that nobody has verified count, too. Default: they do not. */
  unverified?: true;
}

export interface ToolOptions<INPUT, OUTPUT, CONTEXT = unknown> {
  /** The description that the model gets. */
  description?: string;
  /** A zod (3 or 4) or standard schema, or AI SDK `jsonSchema()`, of an object. */
  inputSchema: FlexibleSchema<INPUT>;
  /** What a call does to the world. Default: `mutate`, the safe choice. */
  effect?: Effect;
  /**
   * The schema of what this tool needs of the session's context. It gives `context` its type. A session whose context does
   * not fit waits.
   */
  context?: FlexibleSchema<CONTEXT>;
  idempotency?: Idempotency<INPUT, CONTEXT>;
  /**
   * Whether a person must approve a call first. The function is called once, when the model asks for the call; a replay
   * uses the recorded answer. If it throws, or the functions of one reply take over ten seconds, a person is asked.
   */
  needsApproval?:
    | boolean
    | ((input: INPUT, options: ApprovalOptions<CONTEXT>) => boolean | PromiseLike<boolean>);
  /** Who must approve a call, and until when. Default: anybody, without an end. */
  approval?: ApprovalRules;
  /** How long one attempt may take. Default: one minute. */
  timeout?: Duration;
  /**
   * How long an attempt can still take effect after its `abortSignal` or its worker's death. Default: 5 seconds. A tool that
   * ignores the signal and `fence` can take effect until its `timeout`: set `settle` to that time.
   */
  settle?: Duration;
  /**
   * The most dispatches of a mutation (each after a recorded *absent*), or attempts of another tool after lost workers.
   * Default: 3. A call that an orderly shutdown of the worker interrupts does not count. Of those whose worker dies before
   * the tool begins, at most the first counts.
   */
  maxAttempts?: number;
  /**
   * Runs the call. The result must be JSON. A large one is shortened, with a notice.
   *
   * - On throw: for `read` and `idempotent`, the model gets the error's message. For `mutate`, the effect may have happened,
   *   so the call is *unknown*: it settles and is verified. Throw {@link NotAttemptedError} if nothing happened for certain.
   * - On a lost worker: `read` and `idempotent` run again. `mutate` is *unknown*.
   * - On a replay of the workflow: it is not called. The recorded result is used.
   */
  execute(input: INPUT, context: ToolContext<CONTEXT>): OUTPUT | PromiseLike<OUTPUT> | AsyncIterable<OUTPUT>;
  /**
   * Finds out whether a call without a recorded result has happened. It must not change anything.
   *
   * - `landed`: it happened. `output` is used as the result.
   * - `absent`: it did not happen **and will not**. The call is dispatched again.
   * - `unknown`: `verify` cannot tell. The call waits for a person.
   *
   * It is called after the `settle` time, with the same input and key as `execute`. After a throw or a time-out it is tried
   * twice more, and then counts as `unknown`. Without `verify`, a lost mutation waits for a person. A replay does not call it.
   */
  verify?(
    input: INPUT,
    context: ToolContext<CONTEXT>,
  ): Verification<OUTPUT> | PromiseLike<Verification<OUTPUT>>;
  /** Undoes an effect, when somebody asks for that. Default: people have to. */
  compensate?: Compensation<INPUT, OUTPUT, CONTEXT>;
  /**
   * What the model gets in place of the output, as in the AI SDK. It is called once for each output, and its result is
   * recorded. If it throws, or returns something else, the model gets the output.
   */
  toModelOutput?(
    options: ModelOutputOptions<INPUT, OUTPUT>,
  ): ToolResultPart['output'] | PromiseLike<ToolResultPart['output']>;
}

/** A checked tool definition, for `defineAgent` and for the AI SDK. */
export type DefinedTool<INPUT = unknown, OUTPUT = unknown, CONTEXT = unknown> = ToolOptions<
  INPUT,
  OUTPUT,
  CONTEXT
> & {
  /** `plain`: an AI SDK tool without a declared effect. */
  readonly perdure: 'tool' | 'plain';
  /** Of `sleepUntil` and the like: the session answers its calls itself. */
  readonly builtIn?: BuiltIn;
  /** Of `askPerson`: what its questions take as an answer. */
  readonly question?: { answer?: FlexibleSchema; otherwise?: JsonValue };
  /** Another agent answers its calls: see {@link agentTool}. */
  readonly agent?: SubAgent;
};

/** The agent behind a tool. */
export interface SubAgent {
  readonly name: string;
  /** Absent: other workers have it. */
  readonly definition?: { readonly perdure: 'agent'; readonly name: string };
  readonly taskQueue?: string;
  /** It works in the background. Absent: the call waits for it. */
  readonly background?: AtEnd;
  /** The agent's first message. */
  readonly message: (input: unknown) => string;
}

/**
 * A tool throws it when its effect certainly did not happen: the connection was refused, or the service declined. It is the
 * only error of a mutation that counts as *absent* without asking `verify`.
 */
export class NotAttemptedError extends PerdureError {
  override readonly name: string = 'NotAttemptedError';
  /** Whether the call is dispatched again (the default). Otherwise the model gets the error at once. */
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

/** {@link defineTool} without the check of names: a plain tool has the fields of its AI SDK version. */
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
  'compensate',
  'needsApproval',
  'approval',
  'timeout',
  'settle',
  'maxAttempts',
];

/**
 * The effect of an imported tool: an {@link Effect}, or an object with `effect` and other options of {@link defineTool}.
 */
export type ToolEffect =
  | Effect
  | ({ effect: Effect } & Pick<
      ToolOptions<never, unknown, never>,
      | 'idempotency'
      | 'verify'
      | 'compensate'
      | 'needsApproval'
      | 'approval'
      | 'timeout'
      | 'settle'
      | 'maxAttempts'
    >);

/** Adds an agent's `effects` entry to a tool. @throws PerdureError `INVALID_DEFINITION` */
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
  'compensate',
  'perdure',
  'question',
  'agent',
  'builtIn',
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
    compensationProblem(options) ??
    idempotencyProblem(idempotency) ??
    countProblem('maxAttempts', maxAttempts) ??
    durationProblem('timeout', timeout) ??
    durationProblem('settle', settle, 0) ??
    durationProblem('approval.expires', approval?.expires) ??
    choiceProblem('approval.onExpiry', approval?.onExpiry, ['approve', 'reject']) ??
    schemaProblem(options)
  );
}

/** Only `true` and a function ask a person. Anything else would let every call run, so it is refused. */
function approvalProblem(options: { needsApproval?: unknown; approval?: ApprovalRules }): string | null {
  const { needsApproval, approval } = options;
  if (!['undefined', 'boolean', 'function'].includes(typeof needsApproval)) {
    return `needsApproval is ${JSON.stringify(needsApproval)}: write true, false, or a function of the input`;
  }
  if (approval !== undefined && needsApproval === undefined) {
    return 'approval has no effect without needsApproval: write needsApproval';
  }
  return (
    nameProblem('approval.', approval, ['expires', 'onExpiry', 'people', 'byAnother', 'unverified']) ??
    approversProblem(approval ?? {})
  );
}

/** A rule that nobody could break, or nobody could keep, is a mistake. */
function approversProblem({ people, byAnother, unverified, onExpiry }: ApprovalRules): string | null {
  const isRuled = people !== undefined || byAnother !== undefined;
  const flags: [string, unknown][] = Object.entries({ byAnother, unverified });
  const flag = flags.find(([, value]) => value !== undefined && value !== true);
  if (flag !== undefined)
    return `approval.${flag[0]} is ${JSON.stringify(flag[1])}: write true, or leave it out`;
  if (isRuled && onExpiry === 'approve') {
    return "approval.onExpiry is 'approve': the call would run without the people that approval asks for. Write 'reject'";
  }
  if (unverified === true && !isRuled) {
    return 'approval.unverified has no effect without people or byAnother';
  }
  return people !== undefined && people > 10
    ? `approval.people is ${people}: the most is 10`
    : countProblem('approval.people', people);
}

/** With a wrong identity, all calls of a tool could count as one effect, and only the first would run. */
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

/** What two calls of a tool have in common if they are one effect. */
export function scopeOf(tool: DefinedTool): IdempotencyScope {
  if (typeof tool.idempotency === 'function') return 'session';
  if (tool.perdure === 'plain') return 'call';
  return tool.idempotency?.scope ?? ((tool.effect ?? 'mutate') === 'mutate' ? 'message' : 'call');
}
