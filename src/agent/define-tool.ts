import type { FlexibleSchema } from 'ai';
import type { BuiltIn } from '../contract/built-in.ts';
import { PerdureError } from '../contract/errors.ts';
import { defined, type JsonValue } from '../contract/json.ts';
import type { Effect, IdempotencyScope } from '../contract/manifest.ts';
import type { AtEnd } from '../contract/tree.ts';
import { nameProblem } from './checks.ts';
import type { ToolOptions } from './tool-options.ts';
import { AI_SDK_NAMES, OWN_NAMES, toolProblem } from './tool-problem.ts';

/** A tool in the AI SDK's shape, plus what makes it safe to run durably. */

/** A checked tool definition, for `defineAgent` and for the AI SDK. */
export type DefinedTool<INPUT = unknown, OUTPUT = unknown, CONTEXT = unknown> = ToolOptions<
  INPUT,
  OUTPUT,
  CONTEXT
> & {
  /** `plain`: an AI SDK tool without a declared effect. */
  readonly perdure: 'tool' | 'plain';
  /** Set by `sleepUntil` and other built-in tools: the session answers the calls itself. */
  readonly builtIn?: BuiltIn;
  /** Set by `askPerson`: how its questions are answered. */
  readonly question?: { answer?: FlexibleSchema; otherwise?: JsonValue };
  /** Set by {@link agentTool}: another agent answers the calls. */
  readonly agent?: SubAgent;
};

/** The agent behind a tool. */
export interface SubAgent {
  readonly name: string;
  /** Absent: other workers have the agent. */
  readonly definition?: { readonly perdure: 'agent'; readonly name: string };
  readonly taskQueue?: string;
  /** What happens to a background agent when the caller's task ends. Absent: the call waits for the agent. */
  readonly background?: AtEnd;
  /** The agent's first message. */
  readonly message: (input: unknown) => string;
}

/**
 * A tool throws this error when its effect certainly did not happen: the connection was refused, or the service
 * declined. It is the only error of a mutation that counts as *absent* without asking `verify`.
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
 * The effect of an imported tool: an {@link Effect}, or an object with `effect` and other options of
 * {@link defineTool}.
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
  // What is `undefined` is not declared: it must not take away the approval that the tool asks for.
  const declared = defined(options as Partial<ToolOptions<unknown, unknown>>);
  return checkedTool({ ...tool, ...declared });
}

/** Which equal calls of a tool are one effect. */
export function scopeOf(tool: DefinedTool): IdempotencyScope {
  if (typeof tool.idempotency === 'function') return 'session';
  if (tool.perdure === 'plain') return 'call';
  return tool.idempotency?.scope ?? ((tool.effect ?? 'mutate') === 'mutate' ? 'message' : 'call');
}
