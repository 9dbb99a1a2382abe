/** What a model call came to when it came to no reply: charged, repeated, or stopped visibly. */
import type { ModelResult } from '../contract/activities.ts';
import { isFinal } from '../contract/calls.ts';
import { PerdureError } from '../contract/errors.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import type { Effect, Manifest } from '../contract/manifest.ts';
import type { InFlight, SessionState, WaitReason } from '../contract/state.ts';
import { capProblem, chargeLost, usd } from './budget.ts';
import type { Moment } from './events.ts';
import { appendResults, applyReads } from './reads.ts';
import { applyReply } from './reply.ts';
import { batchCalls, note, toolOf } from './state.ts';
import { cannotAct, stop } from './wait.ts';

/** Model calls that are repeated without a person after a lost or unreadable reply. */
const MODEL_REPEATS = 2;

/**
 * Takes a definition, unless the session's cap on dollars could not be kept under it.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when a newer version wrote it: the workflow task fails, and waits for a
 * worker of that version.
 */
export function setManifest(state: SessionState, manifest: Manifest, moment: Moment): void {
  const schema: unknown = manifest.schema;
  if (schema !== 1) {
    throw new PerdureError(
      'CHECKPOINT_CORRUPTION',
      `the definition of ${manifest.agent} has schema ${String(schema)}, which this version does not know: update the workers`,
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
    if (!isFinal(call)) call.effect = stricter(call.effect, toolOf(state, call)?.effect ?? 'read');
  }
  // Another prompt is another number of tokens, and another list of models begins with its first.
  state.measured = null;
  state.fromModel = 0;
  if (before === null) {
    state.budget.limits = { ...manifest.budget, ...state.budget.limits };
    return;
  }
  note(
    state,
    moment,
    'manifest',
    `the definition of ${manifest.agent} changed: ${before.digest} to ${manifest.digest}`,
  );
}

const STRICTNESS: readonly Effect[] = ['read', 'idempotent', 'mutate'];

/** A call that was asked for under another definition is guarded as the stricter of both says. */
function stricter(a: Effect, b: Effect): Effect {
  return STRICTNESS.indexOf(a) < STRICTNESS.indexOf(b) ? b : a;
}

export function applyModel(
  state: SessionState,
  flight: InFlight,
  outcome: ActivityOutcome<ModelResult>,
  moment: Moment,
): void {
  const reserved = flight.reserved ?? { nanoUsd: 0, tokens: 0 };
  applyReads(state, flight, outcome, moment);
  if (!outcome.ok) {
    // A cancelled activity that had started returns a result; without one it never started, and cost nothing.
    if (outcome.failure.kind === 'cancelled') return;
    chargeLost(state.budget.spent, 1, reserved);
    const { kind, message } = outcome.failure;
    if (kind === 'failed') repeatOrStop(state, moment, 'provider_unavailable', message, flight);
    else repeatLost(state, moment, message, flight);
    return;
  }
  const result = outcome.value;
  switch (result.kind) {
    case 'manifest':
      setManifest(state, result.manifest, moment);
      return;
    case 'unavailable':
      cannotAct(state, moment, result);
      return;
    case 'failed': {
      chargeLost(state.budget.spent, result.maybeBilled, reserved);
      const { failure, message, model } = result;
      if (result.released === true) {
        // A deploy cut it short: neither the model nor the provider has failed, so the same is asked again.
        if (flight.cancelled !== true) note(state, moment, 'released', 'its worker was shut down');
      } else if (
        model !== undefined &&
        model + 1 < (state.manifest?.models.length ?? 0) &&
        flight.cancelled !== true
      ) {
        state.fromModel = model + 1;
        note(state, moment, 'fallback', `${state.manifest?.models[model]?.id ?? model}: ${message}`);
      } else if (failure === 'worker_lost') repeatLost(state, moment, message, flight);
      else if (failure === 'interrupted')
        repeatOrStop(state, moment, 'provider_unavailable', message, flight);
      else if (failure === 'invalid_response')
        repeatOrStop(state, moment, 'invalid_response', message, flight);
      else if (failure === 'history') stop(state, moment, 'history_unreadable', message);
      else stop(state, moment, failure, message);
      return;
    }
    case 'results':
      return;
    case 'reply':
      if (flight.reads !== undefined) appendResults(state, moment);
      applyReply(state, flight, result, moment);
      return;
    default:
      result satisfies never;
  }
}

/** A lost worker is no failure of the provider: the call is repeated for as long as the budget allows. */
function repeatLost(state: SessionState, moment: Moment, message: string, flight: InFlight): void {
  if (flight.cancelled === true) return;
  state.workersLost += 1;
  // One lost worker is a deploy or a crash. After several in a row, something may be wrong with what they run.
  state.resting = state.workersLost > 1;
  const { lostReplies, lostNanoUsd } = state.budget.spent;
  const cost = `${lostReplies} lost replies so far, charged $${usd(lostNanoUsd).toFixed(6)} at most`;
  note(state, moment, 'worker_lost', `${message}; the model is asked again (${cost})`);
}

function repeatOrStop(
  state: SessionState,
  moment: Moment,
  reason: WaitReason,
  message: string,
  flight: InFlight,
): void {
  if (flight.cancelled === true) return;
  state.modelFailures += 1;
  note(state, moment, reason, message);
  if (state.modelFailures > MODEL_REPEATS) stop(state, moment, reason, message);
}
