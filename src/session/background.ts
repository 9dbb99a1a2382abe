/**
 * Sub-agents in the background. Their calls end as soon as they have started. When they end, they report to the
 * session. The session also looks by itself, in case a report is lost.
 */
import type { AttachResult } from '../contract/activities.ts';
import { isFinal } from '../contract/calls.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import type { Moment, Step } from './events.ts';
import { recheckMs } from './global-effect.ts';
import { findCall, flightOf, heartbeatMs, openBackground } from './state.ts';
import { applyChildEnd, childStart, queueReport } from './sub-agents.ts';
import { resultLimit } from './tool-command.ts';

/** A look at a sub-agent that is due, or the timer until the next look; otherwise `null`. */
export function tendBackground(state: SessionState): Step | null {
  const seq = state.seq + 1;
  for (const child of openBackground(state)) {
    const { agent, sessionId, callId, background } = child;
    const { tool, checks, due } = background;
    const call = findCall(state, callId);
    const isStarting = call !== undefined && !isFinal(call);
    if (isStarting || flightOf(state, callId, 'attach') !== undefined) continue;
    if (due === true) {
      const input = {
        agent: state.agent,
        tool,
        callId,
        // A look starts nothing, so it needs no key.
        idempotencyKey: '',
        child: childStart(state, child),
        ...resultLimit(state),
      };
      const summary = `look at ${sessionId}`;
      return {
        type: 'issue',
        callId,
        command: { kind: 'attach', seq, input, heartbeatMs: heartbeatMs(state), summary },
      };
    }
    if (flightOf(state, callId, 'child_recheck') !== undefined) continue;
    const ms = recheckMs(state.manifest?.tools[tool], checks);
    const summary = `look at ${agent} of ${callId} again`;
    return { type: 'issue', callId, timer: 'child_recheck', command: { kind: 'timer', seq, ms, summary } };
  }
  return null;
}

/** Whether the timer of a sub-agent is of no more use. */
export function isStale(state: SessionState, { callId }: InFlight): boolean {
  return !openBackground(state).some((child) => child.callId === callId);
}

/** The time of the next look has come. */
export function lookNow(state: SessionState, { callId }: InFlight): void {
  const background = openBackground(state).find((child) => child.callId === callId)?.background;
  if (background !== undefined) Object.assign(background, { checks: background.checks + 1, due: true });
}

/** Makes a look at all sub-agents in the background due. A look that is in flight may have been too early. */
export function lookAtAll(state: SessionState): void {
  for (const { callId, background } of openBackground(state)) {
    const flight = flightOf(state, callId, 'attach');
    if (flight === undefined) background.due = true;
    else flight.told = true;
  }
}

/** Records that a look is in flight. */
export function lookingAt(state: SessionState, callId: string): void {
  for (const child of openBackground(state)) if (child.callId === callId) delete child.background.due;
}

/** Applies the result of a look at a sub-agent. A failed look says nothing: the next one will. */
export function applyLook(
  state: SessionState,
  { callId, told }: InFlight,
  outcome: ActivityOutcome<AttachResult>,
  moment: Moment,
): void {
  const child = openBackground(state).find((one) => one.callId === callId);
  if (child === undefined) return;
  if (outcome.ok && outcome.value.kind === 'ended') {
    applyChildEnd(state, child.sessionId, outcome.value.end, moment);
  } else if (told === true) child.background.due = true;
}

/** Tells the model of a fork that the sub-agents work for the session that was forked. */
export function leaveBehind(state: SessionState, past: SessionState, moment: Moment): void {
  for (const child of openBackground(past)) {
    const call = findCall(past, child.callId);
    if (call !== undefined && !isFinal(call)) continue;
    const said = `It works for session ${past.sessionId}, and does not report here. If you need its answer, start another one.`;
    queueReport(state, child, 'left', said, moment);
  }
}
