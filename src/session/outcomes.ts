/** Applies the outcomes of commands to the state. */
import type { LoadResult } from '../contract/activities.ts';
import { type EffectOutcome, isFinal } from '../contract/calls.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { applyAside } from './aside.ts';
import { applyLook, lookNow } from './background.ts';
import { deliverReminders, wake } from './built-in.ts';
import { decides } from './edition.ts';
import { applyPrepare, applyTool, applyVerify, releaseCall } from './effect-outcome.ts';
import type { Moment, Outcome } from './events.ts';
import { applyAttach, awaitEffect } from './global-effect.ts';
import { setManifest } from './manifest.ts';
import { applyModel } from './model-outcome.ts';
import { plant, readLoaded } from './origin.ts';
import { applyStorePast, applyTakenIds } from './past.ts';
import { applyDraw, lookedForPrice } from './pool.ts';
import { applyReads } from './reads.ts';
import { endCall, findCall, isActive, iso, note, theCall, toolOf } from './state.ts';
import { lookedForAgent, lookedForTools } from './stuck.ts';
import { applyEarlier } from './undo.ts';
import { cannotAct, stop } from './wait.ts';

/** Applies the outcome of a command. If the command is no longer in flight, nothing changes. */
export function applyOutcome(state: SessionState, seq: number, outcome: Outcome, moment: Moment): void {
  const index = state.inFlight.findIndex((flight) => flight.seq === seq);
  const flight = state.inFlight[index];
  if (flight === undefined) return;
  state.inFlight.splice(index, 1);
  if (flight.reserved !== undefined) {
    state.budget.reserved.nanoUsd -= flight.reserved.nanoUsd;
    state.budget.reserved.tokens -= flight.reserved.tokens;
  }
  if (state.activeSince !== null && !isActive(state)) {
    state.budget.spent.activeMs += Math.max(0, moment.now - Date.parse(state.activeSince));
    state.activeSince = null;
  }
  applyKnown(state, flight, waitForKey(outcome), moment);
}

/** A worker that lacks the key to decrypt its input has done nothing: the session waits for a worker with the key. */
function waitForKey(outcome: Outcome): Outcome {
  if (outcome.kind === 'timer' || outcome.result.ok || outcome.result.failure.unknownKey !== true)
    return outcome;
  const { message } = outcome.result.failure;
  const result = { ok: true, value: { kind: 'unavailable', message, lookAgain: true } } as const;
  switch (outcome.kind) {
    case 'describe':
    case 'model':
    case 'reads':
      return { ...outcome, result };
    case 'tool':
      return { ...outcome, result };
    default:
      return outcome;
  }
}

function applyKnown(state: SessionState, flight: InFlight, outcome: Outcome, moment: Moment): void {
  switch (outcome.kind) {
    case 'load':
      applyLoad(state, outcome.result, moment);
      return;
    case 'describe':
      if (state.away?.due === true) lookedForAgent(state, outcome.result, moment);
      else if (state.pool?.look === true) lookedForPrice(state, outcome.result, moment);
      else if (state.manifest !== null) lookedForTools(state, outcome.result, moment);
      else if (!outcome.result.ok) stop(state, moment, 'agent_unavailable', outcome.result.failure.message);
      else if (outcome.result.value.kind === 'manifest') {
        state.searchAttributes = outcome.result.value.searchAttributes;
        setManifest(state, outcome.result.value.manifest, moment);
      } else cannotAct(state, moment, outcome.result.value);
      return;
    case 'model':
      applyModel(state, flight, outcome.result, moment);
      if (outcome.result.ok && outcome.result.value.kind !== 'unavailable') delete state.away;
      if (outcome.result.ok && outcome.result.value.searchAttributes !== undefined) {
        state.searchAttributes = outcome.result.value.searchAttributes;
      }
      return;
    case 'reads': {
      applyReads(state, flight, outcome.result, moment);
      const result = outcome.result.ok ? outcome.result.value : null;
      if (result?.kind === 'manifest') setManifest(state, result.manifest, moment);
      else if (result?.kind === 'unavailable') cannotAct(state, moment, result);
      else if (result?.kind === 'unreadable') stop(state, moment, 'history_unreadable', result.message);
      return;
    }
    case 'tool':
      applyTool(state, theCall(state, flight.callId ?? ''), flight, outcome.result, moment);
      return;
    case 'attach': {
      const call = findCall(state, flight.callId ?? '');
      if (call === undefined || isFinal(call)) applyLook(state, flight, outcome.result, moment);
      else applyAttach(state, call, flight, outcome.result, moment);
      return;
    }
    case 'report':
    case 'steer':
      return;
    case 'notify':
      if (!outcome.result.ok) {
        const { message } = outcome.result.failure;
        note(state, moment, 'notification', `a notification was not sent: ${message}`);
      }
      return;
    case 'aside':
      applyAside(state, flight, outcome.result, moment);
      return;
    case 'verify': {
      const call = theCall(state, flight.callId ?? '');
      const found: EffectOutcome = outcome.result.ok
        ? outcome.result.value
        : { outcome: 'unknown', reason: `verify ended without a result: ${outcome.result.failure.message}` };
      applyVerify(state, call, found, moment);
      return;
    }
    case 'prepare':
      applyPrepare(state, theCall(state, flight.callId ?? ''), outcome.result, moment);
      return;
    case 'storePast':
      applyStorePast(state, outcome.result, moment);
      return;
    case 'takenIds':
      applyTakenIds(state, outcome.result, moment);
      return;
    case 'draw':
      applyDraw(state, flight, outcome.result, moment);
      return;
    case 'timer':
      applyTimer(state, flight, moment);
      return;
    default:
      outcome satisfies never;
  }
}

function applyLoad(state: SessionState, outcome: ActivityOutcome<LoadResult>, moment: Moment): void {
  const { loading, origin } = state;
  if (loading === null || origin === null) {
    applyEarlier(state, outcome, moment);
    return;
  }
  if (!outcome.ok) {
    if (outcome.failure.kind !== 'cancelled')
      stop(state, moment, 'history_unreadable', outcome.failure.message);
    return;
  }
  const result = outcome.value;
  if (result.kind === 'unavailable') {
    stop(state, moment, 'history_unreadable', result.message);
    return;
  }
  if (result.kind !== 'part') return;
  loading.parts.push(result.text);
  if (loading.parts.length < result.parts) return;
  const loaded = readLoaded(loading.parts.join(''));
  if (loaded === null) {
    loading.parts = [];
    stop(
      state,
      moment,
      'history_unreadable',
      'a newer version of perdure wrote the checkpoint. Update this worker',
    );
  } else plant(state, origin, loaded, moment);
}

function applyTimer(state: SessionState, flight: InFlight, moment: Moment): void {
  if (flight.kind === 'ttl') {
    state.finishing = true;
    return;
  }
  if (flight.kind === 'pool_recheck') {
    if (state.pool !== undefined) state.pool.due = true;
    return;
  }
  if (flight.kind === 'child_recheck') {
    lookNow(state, flight);
    return;
  }
  if (flight.kind === 'agent_recheck') {
    if (state.away !== undefined) state.away = { checks: state.away.checks + 1, due: true };
    return;
  }
  if (flight.kind === 'rate_recheck') {
    delete state.limited;
    return;
  }
  if (flight.kind === 'model_backoff') {
    state.resting = false;
    return;
  }
  if (flight.kind === 'reminder') {
    deliverReminders(state, flight, moment);
    return;
  }
  const call = theCall(state, flight.callId ?? '');
  if (flight.kind === 'sleep') {
    wake(call, null, moment);
  } else if (flight.kind === 'recheck') {
    // A session that is about to stop waiting does not look again.
    if (call.status.kind === 'awaiting') {
      const { checks, person } = call.status;
      awaitEffect(call, { checks: checks + 1, person, due: state.cancelling === null && !state.interrupted });
    } else if (call.status.kind === 'stuck') {
      call.status = { ...call.status, checks: (call.status.checks ?? 0) + 1, due: true };
    }
  } else if (flight.kind === 'settle' || flight.kind === 'backoff') {
    releaseCall(state, call);
  } else if (flight.kind === 'approval_expiry' && call.status.kind === 'approval') {
    const at = iso(moment);
    const { question } = call.status;
    // Its rules are those of the definition that asked. None of them lets it run without people.
    const isRuled = call.approvers !== undefined && decides(state, 'approversHold');
    const onExpiry = question || isRuled ? 'reject' : (toolOf(state, call)?.approval.onExpiry ?? 'reject');
    call.decision = { decision: 'expired', by: 'policy', at, reason: `nobody decided in time: ${onExpiry}` };
    if (onExpiry === 'approve') call.status = { kind: 'ready' };
    else {
      const missing = question ? `answered the question "${question.text}" of` : 'approved';
      const content = `Nobody ${missing} this call of ${call.name} in time; it was not executed.`;
      endCall(call, { kind: 'skipped' }, { content, isError: true }, at);
    }
  }
}
