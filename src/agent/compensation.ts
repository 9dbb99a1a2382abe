/** How a tool undoes its effects. */
import type { EffectRef } from '../contract/calls.ts';
import type { Effect } from '../contract/manifest.ts';
import { kindProblem, nameProblem } from './checks.ts';
import type { ToolContext, Verification } from './tool-context.ts';

/** The last argument of a compensation's functions. */
export interface CompensationContext<CONTEXT = unknown> extends ToolContext<CONTEXT> {
  /** The effect to undo: its call, and the key that `execute` had. `idempotencyKey` is the compensation's own. */
  effect: EffectRef;
}

/**
 * Undoes an effect of the tool, when somebody asks for that: `perdure cancel --undo`, or a rewind with `undo`. It is
 * guarded like any mutation: recorded before it runs, fenced, settled and verified after a loss. It has the tool's
 * `timeout`, `settle` and `maxAttempts`. If it fails, the session waits for a person.
 */
export interface Compensation<INPUT, OUTPUT, CONTEXT = unknown> {
  /** Undoes the effect. `output` is the result on record. Throw `NotAttemptedError` if nothing happened for certain. */
  execute(input: INPUT, output: OUTPUT, context: CompensationContext<CONTEXT>): unknown;
  /** Finds out whether a lost compensation has happened, as the tool's own `verify` does for the effect. */
  verify?(
    input: INPUT,
    output: OUTPUT,
    context: CompensationContext<CONTEXT>,
  ): Verification<unknown> | PromiseLike<Verification<unknown>>;
  /** `false`: it runs without approval. Default: a person approves each compensation, by the rules of `approval`. */
  needsApproval?: boolean;
}

/** The problem of a tool's `compensate`, with what to write instead, or `null`. */
export function compensationProblem({
  compensate,
  effect = 'mutate',
}: {
  compensate?: Compensation<never, never>;
  effect?: Effect;
}): string | null {
  if (compensate === undefined) return null;
  if (effect === 'read') return "compensate is for tools with an effect, but this tool is 'read': remove it";
  const given: { execute?: unknown; verify?: unknown } = compensate;
  if (typeof given.execute !== 'function')
    return 'compensate.execute is missing: write compensate: { execute: async (input, output, { idempotencyKey }) => … }';
  if (given.verify !== undefined && typeof given.verify !== 'function')
    return "compensate.verify is not a function: write verify: async (input, output, { idempotencyKey }) => ({ outcome: 'absent' })";
  return (
    nameProblem('compensate.', compensate, ['execute', 'verify', 'needsApproval']) ??
    kindProblem('compensate.needsApproval', compensate.needsApproval, 'true or false')
  );
}
