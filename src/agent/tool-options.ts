/** The options of a tool. */
import type { Duration } from '@temporalio/common';
import type { FlexibleSchema, ToolExecutionOptions, ToolResultPart } from 'ai';
import type { Effect, IdempotencyScope } from '../contract/manifest.ts';
import type { Compensation } from './compensation.ts';
import type { ToolContext, Verification } from './tool-context.ts';

/** The second argument of `needsApproval`. Its list of messages is empty. */
export interface ApprovalOptions<CONTEXT = unknown>
  extends Pick<ToolExecutionOptions, 'toolCallId' | 'messages'> {
  /** The session's context, as in {@link ToolContext.context}. */
  context: CONTEXT;
}

/** What makes two calls of a tool the same effect. */
export type Idempotency<INPUT, CONTEXT = unknown> =
  | {
      /**
       * Which equal calls are one effect. `call`: none. `message`: those in answer to one message of the user.
       * `session`: those of one session. `global` (for `mutate`): those of all sessions. Default: `message` for
       * `mutate`, otherwise `call`.
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

/** How people approve the calls of a tool. */
export interface ApprovalRules {
  /** How long a call waits for people, at most 10 years. Default: for ever. */
  expires?: Duration;
  /** What happens if nobody decides in that time. Default: `reject`. */
  onExpiry?: 'approve' | 'reject';
  /** How many different people must approve, 1 to 10. One person is enough to reject. Default: 1. */
  people?: number;
  /** Whoever has sent or edited messages of the session, or rewound or forked it, cannot approve. */
  byAnother?: true;
  /** With `people` or `byAnother`: unverified names count, too. Default: they do not. */
  unverified?: true;
}

/** Options of {@link defineTool}. */
export interface ToolOptions<INPUT, OUTPUT, CONTEXT = unknown> {
  /** The description that the model gets. */
  description?: string;
  /** A zod (3 or 4) or standard schema, or AI SDK `jsonSchema()`, of an object. */
  inputSchema: FlexibleSchema<INPUT>;
  /** What a call does to the world. Default: `mutate`, the safe choice. */
  effect?: Effect;
  /**
   * The schema of what this tool needs from the session's context. It gives `context` its type. A session whose context
   * does not fit waits.
   */
  context?: FlexibleSchema<CONTEXT>;
  idempotency?: Idempotency<INPUT, CONTEXT>;
  /**
   * Whether a person must approve a call first. The function is called once, when the model asks for the call; a replay
   * uses the recorded answer. If it throws, or the checks of one reply take over ten seconds, a person is asked.
   */
  needsApproval?:
    | boolean
    | ((input: INPUT, options: ApprovalOptions<CONTEXT>) => boolean | PromiseLike<boolean>);
  /** Who must approve a call, and until when. Default: anybody, without an end. */
  approval?: ApprovalRules;
  /** How long one attempt may take, at most 2147483647 milliseconds (almost 25 days). Default: one minute. */
  timeout?: Duration;
  /**
   * How long an attempt can still take effect after its `abortSignal` or its worker's death. Default: 5 seconds. A tool
   * that ignores the signal and `fence` can take effect until its `timeout`: set `settle` to that time.
   */
  settle?: Duration;
  /**
   * The most dispatches of a mutation (each after a recorded *absent*), or attempts of any other tool. Default: 3. An
   * attempt that an orderly shutdown of the worker interrupts does not count. Of the attempts whose worker dies before
   * the tool begins, at most the first counts.
   */
  maxAttempts?: number;
  /**
   * Runs the call. The result must be JSON. A large result goes to the store of values, or is shortened with a notice.
   *
   * - On throw: for `read` and `idempotent`, the model gets the error's message. For `mutate`, the effect may have
   *   happened, so the call is *unknown*: it settles and is verified. Throw {@link NotAttemptedError} if nothing
   *   happened for certain.
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
   * It is called after the `settle` time, with the same input and key as `execute`. After a throw or a time-out it is
   * tried twice more. Then the outcome is `unknown`. Without `verify`, a lost mutation waits for a person. A replay
   * does not call it.
   */
  verify?(
    input: INPUT,
    context: ToolContext<CONTEXT>,
  ): Verification<OUTPUT> | PromiseLike<Verification<OUTPUT>>;
  /** Undoes an effect, when somebody asks for that. Default: people must undo it themselves. */
  compensate?: Compensation<INPUT, OUTPUT, CONTEXT>;
  /**
   * Returns what the model gets in place of the output, as in the AI SDK. It is called once for each output, and its
   * result is recorded. If it throws, returns something else or takes over five seconds, the model gets the output.
   */
  toModelOutput?(
    options: ModelOutputOptions<INPUT, OUTPUT>,
  ): ToolResultPart['output'] | PromiseLike<ToolResultPart['output']>;
}
