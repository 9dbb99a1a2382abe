/** Takes care of open calls and their timers in every phase of the session. */
import type { ToolCall } from '../contract/calls.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { isStale } from './background.ts';
import type { Moment, Step } from './events.ts';
import { tendAwaiting } from './global-effect.ts';
import { contextPart } from './model-command.ts';
import { asksAgain } from './pool.ts';
import { flightOf, isUntold, theCall, toolOf } from './state.ts';
import { verifyCommand } from './tool-command.ts';
import { isUndoing } from './undo.ts';

const BACKOFF = { firstMs: 1_000, maxMs: 30_000 };

/** The next step that an open call needs in any phase: a timer, a verification, the check of edited arguments. */
export function tendCalls(state: SessionState, calls: readonly ToolCall[], moment: Moment): Step | null {
  const seq = state.seq + 1;
  // Calls that are about to be skipped need nothing. A command that is stopped in its own activation leaves no trace in
  // the history, so the fold would number the next commands differently.
  const skipping = (state.cancelling !== null || state.interrupted) && !isUndoing(state);
  for (const call of calls) {
    const timer = (ms: number, summary: string): Step => ({
      type: 'issue',
      callId: call.id,
      command: { kind: 'timer', seq, ms, summary },
    });
    const { status } = call;
    if (
      status.kind === 'approval' &&
      !skipping &&
      status.expiresAt !== null &&
      !flightOf(state, call.id, 'approval_expiry')
    ) {
      return timer(
        Math.max(1, Date.parse(status.expiresAt) - moment.now),
        `approval of ${call.name} ${call.id} expires`,
      );
    }
    if (status.kind === 'sleeping' && !skipping && !flightOf(state, call.id, 'sleep')) {
      return timer(Math.max(1, Date.parse(status.until) - moment.now), `${call.name} ${call.id} waits`);
    }
    if (status.kind === 'settling' && !flightOf(state, call.id, 'settle')) {
      // The effect's former workflow was ended from outside, so its last dispatch may still run.
      const running = state.effect !== null && call.dispatches.length === 0;
      const tool = toolOf(state, call);
      const ms = (tool?.settleMs ?? 0) + (running ? (tool?.timeoutMs ?? 0) : 0);
      if (ms === 0) return { type: 'release_call', callId: call.id };
      return timer(ms, `${call.name} ${call.id} settles`);
    }
    if (status.kind === 'awaiting') {
      const step = tendAwaiting(state, call);
      if (step !== null) return step;
    }
    if (status.kind === 'backoff' && !skipping && !flightOf(state, call.id, 'backoff')) {
      const ms = Math.min(BACKOFF.maxMs, BACKOFF.firstMs * 2 ** (call.dispatches.length - 1));
      return timer(ms, `${call.name} ${call.id} is tried again`);
    }
    if (status.kind === 'verifying' && !flightOf(state, call.id, 'verify')) {
      return { type: 'issue', callId: call.id, command: verifyCommand(state, call, seq) };
    }
    const checking = checkArguments(state, [call]);
    if (checking !== null) return checking;
  }
  return null;
}

/** Checks the arguments of the first call that is being prepared; otherwise `null`. */
export function checkArguments(state: SessionState, calls: readonly ToolCall[]): Step | null {
  const call = calls.find(
    (each) =>
      each.status.kind === 'preparing' &&
      (state.cancelling === null || isUntold(each)) &&
      !flightOf(state, each.id, 'prepare'),
  );
  if (call === undefined) return null;
  const { id: callId, name: tool, args } = call;
  const input = { agent: state.agent, tool, callId, args, ...contextPart(state) };
  const summary = `check ${tool} ${callId}`;
  return { type: 'issue', callId, command: { kind: 'prepare', seq: state.seq + 1, input, summary } };
}

/** In which statuses of its call a timer has a purpose. A person may end these statuses early. */
const WAITS_FOR: { [kind in InFlight['kind']]?: readonly ToolCall['status']['kind'][] } = {
  approval_expiry: ['approval'],
  backoff: ['backoff'],
  sleep: ['sleeping'],
  recheck: ['awaiting', 'stuck'],
};

/** Stops a timer that nothing waits for any more. */
export function dropStaleTimer(state: SessionState): Step | null {
  return stopFirst(state, (flight) => {
    const { kind, callId } = flight;
    if (kind === 'model_backoff') return !state.resting;
    if (kind === 'pool_recheck') return !asksAgain(state);
    if (kind === 'child_recheck') return isStale(state, flight);
    if (kind === 'rate_recheck') return state.limited === undefined;
    if (kind === 'agent_recheck') return state.wait?.reason !== 'agent_unavailable';
    const waitsFor = WAITS_FOR[kind];
    return waitsFor !== undefined && !waitsFor.includes(theCall(state, callId ?? '').status.kind);
  });
}

/** Stops the first command in flight for which the condition holds and that is not being stopped yet. */
export function stopFirst(state: SessionState, which: (flight: InFlight) => boolean): Step | null {
  const flight = state.inFlight.find((candidate) => candidate.cancelled !== true && which(candidate));
  return flight === undefined ? null : { type: 'stop', seq: flight.seq };
}
