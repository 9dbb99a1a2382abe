/** Takes over a definition: at the start, and whenever a worker has another one. */
import { isFinal, type ToolCall } from '../contract/calls.ts';
import { PerdureError } from '../contract/errors.ts';
import type { Effect, Manifest } from '../contract/manifest.ts';
import type { SessionState } from '../contract/state.ts';
import { recordChange } from './agent-change.ts';
import { capProblem } from './budget.ts';
import type { Moment } from './events.ts';
import { batchCalls, toolOf } from './state.ts';
import { stop } from './wait.ts';

/**
 * Takes over a definition, unless the session could not keep its cap on dollars with it.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when a newer version wrote the definition. The workflow task then fails
 * until a worker of that version takes it.
 */
export function setManifest(state: SessionState, manifest: Manifest, moment: Moment): void {
  const schema: unknown = manifest.schema;
  if (schema !== 1) {
    throw new PerdureError(
      'CHECKPOINT_CORRUPTION',
      `the definition of ${manifest.agent} has schema ${String(schema)}, which this version of perdure does not know. Update the workers`,
    );
  }
  const problem = capProblem(manifest, state.budget.limits);
  if (problem !== null) {
    stop(state, moment, 'budget', problem);
    return;
  }
  const before = state.manifest;
  state.manifest = manifest;
  for (const call of batchCalls(state)) {
    if (!isFinal(call)) guard(call, toolOf(state, call)?.effect ?? 'read');
  }
  // A new prompt has another number of tokens, and a new list of models starts at its first model.
  state.measured = null;
  state.fromModel = 0;
  delete state.compaction;
  if (before === null) {
    state.budget.limits = { ...manifest.budget, ...state.budget.limits };
    return;
  }
  recordChange(state, before, moment);
}

const STRICTNESS: readonly Effect[] = ['read', 'idempotent', 'mutate'];

/** Guards an open call by the stricter of the recorded and the new definition. */
function guard(call: ToolCall, defined: Effect): void {
  if (STRICTNESS.indexOf(defined) <= STRICTNESS.indexOf(call.effect)) return;
  call.effect = defined;
  const { kind } = call.status;
  const mayHaveRun = call.dispatches.some(({ unbegun }) => unbegun !== true);
  if (defined !== 'mutate' || !mayHaveRun || (kind !== 'ready' && kind !== 'stuck')) return;
  call.status = { kind: 'settling', reason: 'it was dispatched before its tool was declared a mutation' };
}
