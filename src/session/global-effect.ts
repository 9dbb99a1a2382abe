/**
 * Calls of scope `global`. The effect of such a call runs in a workflow of its own, once for all sessions. The call
 * waits with nothing in flight until that workflow signals that there is news.
 */
import type { AttachInput, AttachResult } from '../contract/activities.ts';
import { type EffectWait, isFinal, type ToolCall } from '../contract/calls.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import type { ToolManifest } from '../contract/manifest.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { decides } from './edition.ts';
import { applyTool } from './effect-outcome.ts';
import type { Moment, Step } from './events.ts';
import { contextPart } from './model-command.ts';
import { flightOf, heartbeatMs, isGivenUp, note, toolOf } from './state.ts';
import {
  applyChildEnd,
  childOf,
  childPart,
  isDelegated,
  notStarted,
  startedInBackground,
} from './sub-agents.ts';
import { resultLimit } from './tool-command.ts';

/** The session looks without a signal after the longest time that a call may take, plus this margin. */
const RECHECK_MARGIN_MS = 5_000;
const RECHECK_MAX_MS = 24 * 60 * 60 * 1_000;
/** How many waiting calls one activity signals. */
const REPORT_AT_ONCE = 100;

/** Starts the effect of a call, or finds it. */
export function attachStep(state: SessionState, call: ToolCall): Step {
  return attach(state, call, { args: call.args, ...contextPart(state) });
}

function attach(state: SessionState, call: ToolCall, start?: AttachInput['start']): Step {
  return {
    type: 'issue',
    callId: call.id,
    command: {
      kind: 'attach',
      seq: state.seq + 1,
      input: {
        agent: state.agent,
        tool: call.name,
        callId: call.id,
        idempotencyKey: call.idempotencyKey,
        ...(start === undefined ? {} : { start }),
        ...childPart(state, call),
        ...resultLimit(state),
      },
      heartbeatMs: heartbeatMs(state),
      summary: `${start === undefined ? 'look at' : 'attach to'} ${whatOf(state, call)} of ${call.name} ${call.id}`,
    },
  };
}

function whatOf(state: SessionState, call: ToolCall): string {
  return isDelegated(state, call) ? 'the sub-agent' : 'the effect';
}

/** The next step of a call that waits for its effect: a look that is due, or a timer in case no signal comes. */
export function tendAwaiting(state: SessionState, call: ToolCall): Step | null {
  const { status } = call;
  if (status.kind !== 'awaiting' || flightOf(state, call.id, 'attach') !== undefined) return null;
  if (status.due === true) return attach(state, call);
  const stopping = state.cancelling !== null || (state.interrupted && state.paused === null);
  if (flightOf(state, call.id, 'recheck') !== undefined || (stopping && isGivenUp(state, call))) return null;
  // A worker for the task queue may come at any time, so these looks do not become rarer.
  const ms = recheckMs(toolOf(state, call), isWorkerless(status.person) ? 0 : status.checks);
  const summary = `look at ${whatOf(state, call)} of ${call.name} ${call.id} again`;
  return { type: 'issue', callId: call.id, command: { kind: 'timer', seq: state.seq + 1, ms, summary } };
}

/** How long the session waits for a report before it looks by itself. The time doubles with each look. */
export function recheckMs(tool: ToolManifest | undefined, checks: number): number {
  const firstMs = (tool?.timeoutMs ?? 0) + (tool?.settleMs ?? 0) + RECHECK_MARGIN_MS;
  return Math.min(RECHECK_MAX_MS, firstMs * 2 ** checks);
}

/** Whether no worker polls the task queue of a sub-agent. */
function isWorkerless(person: EffectWait | undefined): person is Extract<EffectWait, { taskQueue: string }> {
  return person !== undefined && 'taskQueue' in person;
}

/** Lets a call wait for its effect. */
export function awaitEffect(
  call: ToolCall,
  { checks, person, due }: { checks: number; person?: EffectWait | undefined; due: boolean },
): void {
  call.status = {
    kind: 'awaiting',
    checks,
    ...(due ? { due } : {}),
    ...(person === undefined ? {} : { person }),
  };
}

/** Records that the look that was due is in flight. */
export function looking({ status }: ToolCall): void {
  if (status.kind === 'awaiting') delete status.due;
}

/** Makes a look at the effect due. A look in flight may have been too early, so another one follows it. */
export function lookAtEffect(state: SessionState, call: ToolCall): void {
  const flight = flightOf(state, call.id, 'attach');
  if (flight !== undefined) flight.told = true;
  else if (call.status.kind === 'awaiting') call.status = { ...call.status, due: true };
}

/** Applies the result of a look at the effect. */
export function applyAttach(
  state: SessionState,
  call: ToolCall,
  flight: InFlight,
  outcome: ActivityOutcome<AttachResult>,
  moment: Moment,
): void {
  const { status } = call;
  if (status.kind !== 'running' && status.kind !== 'awaiting') return;
  const before = status.kind === 'awaiting' ? status : { checks: 0 };
  const due = flight.told === true;
  // A failed look says nothing and loses nothing: the next one shows whether there is an effect.
  if (!outcome.ok) {
    awaitEffect(call, { ...before, due });
    return;
  }
  const result = outcome.value;
  const child = childOf(state, call);
  if (result.kind === 'waiting' && status.kind === 'running' && isWorkerless(result.person))
    note(state, moment, 'no_worker', `${call.id} ${call.name}: ${result.person.reason}`);
  if (result.kind === 'waiting' && child?.background !== undefined) {
    startedInBackground(call, child, moment);
    if (due) child.background.due = true;
  } else if (result.kind === 'waiting') {
    awaitEffect(call, { checks: before.checks, person: result.person, due });
  } else if (result.kind === 'ended') {
    applyChildEnd(state, child?.sessionId ?? '', result.end, moment);
  } else if (result.kind === 'gone') {
    const dispatch = call.dispatches.at(-1);
    if (dispatch !== undefined) Object.assign(dispatch, { outcome: 'absent', reason: result.reason });
    call.status = { kind: 'ready' };
  } else {
    call.status = { kind: 'running' };
    applyTool(state, call, flight, { ok: true, value: result }, moment);
    if (child !== undefined) notStarted(state, child);
  }
}

/** Tells the calls that wait for this effect that a person is needed, or no longer, or that there is an outcome. */
export function reportStep(state: SessionState): Step | null {
  const call = state.calls[0];
  if (state.effect === null || call === undefined || isReporting(state)) return null;
  const news = newsOf(call);
  if (news === undefined && !decides(state, 'tellsWhenAnswered')) return null;
  const waiters = state.effect.waiters.filter(({ told }) => told !== 'outcome' && told !== news);
  if (waiters.length === 0) return null;
  const some = waiters.slice(0, REPORT_AT_ONCE);
  return {
    type: 'issue',
    command: {
      kind: 'report',
      seq: state.seq + 1,
      input: { waiters: some.map(({ sessionId, callId }) => ({ sessionId, callId })) },
      heartbeatMs: heartbeatMs(state),
      summary: `tell ${some.length} of ${state.effect.waiters.length} calls: ${news ?? 'answered'}`,
    },
  };
}

/** Records which calls are being told. A call whose signal is lost finds the outcome when it looks by itself. */
export function reporting({ effect, calls }: SessionState, told: readonly AttachedCall[]): void {
  const news = calls[0] && newsOf(calls[0]);
  for (const waiter of effect?.waiters ?? []) {
    if (!told.some((one) => isSame(one, waiter))) continue;
    if (news === undefined) delete waiter.told;
    else waiter.told = news;
  }
}

/** Whether calls are being told. */
export function isReporting({ inFlight }: SessionState): boolean {
  return inFlight.some(({ kind }) => kind === 'report');
}

interface AttachedCall {
  sessionId: string;
  callId: string;
}

function isSame(a: AttachedCall, b: AttachedCall): boolean {
  return a.sessionId === b.sessionId && a.callId === b.callId;
}

/** Adds a call to those that wait for this effect. */
export function addWaiter({ effect }: SessionState, { sessionId, callId }: AttachedCall): void {
  const waiter = { sessionId, callId };
  if (effect !== null && !effect.waiters.some((other) => isSame(other, waiter))) effect.waiters.push(waiter);
}

/** What the calls that wait are told; `undefined` while the effect runs. */
function newsOf(call: ToolCall): 'person' | 'outcome' | undefined {
  if (isFinal(call)) return 'outcome';
  return call.status.kind === 'unknown' || call.status.kind === 'stuck' ? 'person' : undefined;
}
