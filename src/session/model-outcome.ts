/**
 * Applies the outcomes of model calls. A call without a reply is charged and repeated, or the session visibly stops.
 */

import type { ActivityOutcome } from '../contract/failure.ts';
import type { ModelResult } from '../contract/model-call.ts';
import type { InFlight, SessionState, WaitReason } from '../contract/state.ts';
import { chargeLost, usd } from './budget.ts';
import { applyCompacted, refusedPrompt } from './compaction.ts';
import type { Moment } from './events.ts';
import { applyLimited } from './limited.ts';
import { setManifest } from './manifest.ts';
import { appendResults, applyReads } from './reads.ts';
import { applyReply } from './reply.ts';
import { note } from './state.ts';
import { cannotAct, stop } from './wait.ts';

/** How often the session repeats a model call by itself after a lost or unreadable reply. */
const MODEL_REPEATS = 2;

export function applyModel(
  state: SessionState,
  flight: InFlight,
  outcome: ActivityOutcome<ModelResult>,
  moment: Moment,
): void {
  const reserved = flight.reserved ?? { nanoUsd: 0, tokens: 0 };
  applyReads(state, flight, outcome, moment);
  if (!outcome.ok) {
    // A cancelled activity that had started returns a result. Without a result it never started, and cost nothing.
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
        // A deploy cut the call short. Neither the model nor the provider failed, so the same model is asked again.
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
      else if (failure === 'context_window') refusedPrompt(state, flight, message, moment);
      else if (failure === 'history') stop(state, moment, 'history_unreadable', message);
      else stop(state, moment, failure, message);
      return;
    }
    case 'results':
      return;
    case 'limited':
      applyLimited(state, flight, result, moment);
      return;
    case 'compacted':
      applyCompacted(state, flight, result, moment);
      return;
    case 'uncompacted':
      state.compaction = 'tried';
      note(state, moment, 'not_compacted', result.message);
      return;
    case 'reply':
      if (flight.reads !== undefined) appendResults(state, moment);
      applyReply(state, flight, result, moment);
      return;
    default:
      result satisfies never;
  }
}

/** Repeats a call whose worker was lost: the provider did not fail. The budget limits how often this happens. */
function repeatLost(state: SessionState, moment: Moment, message: string, flight: InFlight): void {
  if (flight.cancelled === true) return;
  state.workersLost += 1;
  // One lost worker is a deploy or a crash. After several in a row, the call itself may be what kills them.
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
