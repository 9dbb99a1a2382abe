/**
 * Decides what a session does next. `decide` reads the state and returns one step; `null` means that the session waits.
 */
import { isAnswered, isFinal, type ToolCall } from '../contract/calls.ts';
import { defined } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { asideStep, hasQueued, isAnswering } from './aside.ts';
import { tendBackground } from './background.ts';
import { type Exceeded, exceeded, worstCase } from './budget.ts';
import { reminderStep } from './built-in.ts';
import { addedBytes, compaction } from './compaction.ts';
import { answerOf, answerOrRelease } from './equal-calls.ts';
import type { Moment, Step } from './events.ts';
import { attachStep, isReporting, reportStep } from './global-effect.ts';
import { limitedStep } from './limited.ts';
import { describeCommand, modelCommand } from './model-command.ts';
import { endNotice, notifyStep } from './notify.ts';
import { checkIdsStep, fitsNewRun, storeAtRest, storeInReads, storeStep } from './past.ts';
import { drawStep, giveBack, lookAtPool, poolOfTree, settleEnd } from './pool.ts';
import { issueReads } from './reads.ts';
import {
  batchCalls,
  hasActivity,
  isGivenUp,
  isOpen,
  isUntold,
  lastMessage,
  lastOutput,
  lastText,
  openBackground,
  theCall,
} from './state.ts';
import { steerStep } from './steer.ts';
import { lookForAgent, lookForTools } from './stuck.ts';
import { delegationProblem, isCrowded, isDelegated, reportEnd } from './sub-agents.ts';
import { checkArguments, dropStaleTimer, stopFirst, tendCalls } from './tend-calls.ts';
import { toolCommand } from './tool-command.ts';
import { hasEarlier, isCompensation, isUndoing, undoStep } from './undo.ts';

/** How long the session rests before it repeats a model call whose workers were lost. */
const MODEL_BACKOFF = { firstMs: 1_000, maxMs: 60_000 };

/** While one of these is in flight, the session issues nothing else of its own. */
const EXCLUSIVE: readonly InFlight['kind'][] = ['load', 'describe', 'model', 'storePast', 'takenIds', 'draw'];

/** What a pause stops if it must take effect now. */
const PAUSED: readonly InFlight['kind'][] = ['model', 'reads', 'tool', 'aside'];

/** The next step that the session takes by itself, or `null` when it waits for an outcome or a person. */
export function decide(state: SessionState, moment: Moment): Step | null {
  if (state.status.kind !== 'active' || state.continuing === 'now') return null;
  if (state.ending !== undefined) return closeStep(state, state.ending, moment);
  const step = nextStep(state, moment) ?? storeAtRest(state, moment) ?? giveBack(state);
  return step?.type === 'close'
    ? (settleEnd(state) ?? reportEnd(state, step) ?? endNotice(state, step, moment))
    : step;
}

/** A sub-agent closes after it has reported. */
function closeStep(state: SessionState, status: 'completed' | 'cancelled', moment: Moment): Step | null {
  return isReporting(state) ? null : endNotice(state, ending(state, status), moment);
}

function ending(state: SessionState, status: 'completed' | 'cancelled'): Extract<Step, { type: 'close' }> {
  const output = status === 'completed' ? lastOutput(state) : undefined;
  const result = { status, text: lastText(state), turns: state.turn };
  return { type: 'close', result: { ...result, ...defined({ output }) } };
}

function nextStep(state: SessionState, moment: Moment): Step | null {
  // A sealed session issues nothing, but can be ended.
  if (state.sealed !== null && state.cancelling === null) return null;
  const calls = batchCalls(state);
  if (isLeaving(state)) {
    // An update waits for the check of edited arguments.
    const checking = checkArguments(state, calls);
    if (checking !== null || hasActivity(state)) return checking;
    return { type: fitsNewRun(state) ? 'continue' : 'stay' };
  }
  const tending =
    tendCalls(state, calls, moment) ??
    reportStep(state) ??
    tendBackground(state) ??
    steerStep(state) ??
    notifyStep(state, moment) ??
    reminderStep(state, moment) ??
    dropStaleTimer(state);
  if (tending !== null) return tending;
  // A rewound session that must undo its effects reads them first, even though it is being cancelled.
  const isEnding = state.cancelling !== null && state.loading?.cancel === undefined;
  if (isEnding) return decideCancel(state, calls, moment);
  if (state.paused !== null) {
    if (!state.paused.requestedNow) return null;
    return stopFirst(state, ({ kind }) => PAUSED.includes(kind));
  }
  if (state.interrupted) {
    const interrupting = interrupt(state, calls);
    if (interrupting !== null) return interrupting;
  }
  if (state.wait !== null) return isFull(moment) ? null : (lookForAgent(state) ?? lookAtPool(state));
  const look = isFull(moment) ? null : lookForTools(state, calls);
  if (look !== null) return look;
  const aside = isFull(moment) ? null : asideStep(state);
  if (state.inFlight.some(({ kind }) => EXCLUSIVE.includes(kind))) return aside;
  if (state.loading !== null && state.origin !== null) {
    const { by: _by, verified: _verified, reason: _reason, ...from } = state.origin;
    const undo = state.loading.undo === undefined ? {} : { undo: true as const };
    const input = { ...from, ...undo, part: state.loading.parts.length };
    return { type: 'issue', command: { kind: 'load', seq: state.seq + 1, input } };
  }
  if (state.manifest === null) return { type: 'issue', command: describeCommand(state) };
  // A side answer comes last: it is about the transcript as it stands at the end of the workflow task.
  return calls.length > 0 ? (decideBatch(state, calls, moment) ?? aside) : decideTurn(state, moment);
}

/** Whether the session is about to continue in a new run, so that it starts nothing new. */
function isLeaving({ continuing, cancelling, inFlight }: SessionState): boolean {
  return continuing === 'next' || (cancelling === null && inFlight.some(({ kind }) => kind === 'storePast'));
}

function decideCancel(state: SessionState, calls: readonly ToolCall[], moment: Moment): Step | null {
  if (isUndoing(state)) return lookForTools(state, calls) ?? decideBatch(state, calls, moment);
  const stopping = stopFirst(
    state,
    (flight) =>
      (EXCLUSIVE.includes(flight.kind) && flight.gives !== true && !hasEarlier(state)) ||
      (flight.kind === 'prepare' && !isUntold(theCall(state, flight.callId ?? ''))) ||
      flight.kind === 'ttl' ||
      flight.kind === 'aside' ||
      flight.kind === 'model_backoff' ||
      flight.kind === 'agent_recheck' ||
      flight.kind === 'pool_recheck' ||
      flight.kind === 'reads',
  );
  if (stopping !== null) return stopping;
  const idle = calls.find((call) => isIdle(state, call) && !isUntold(call));
  if (idle !== undefined) {
    const reason = isCompensation(idle) ? 'The undo was given up.' : 'The session was cancelled.';
    return { type: 'skip_call', callId: idle.id, reason };
  }
  if (state.inFlight.length > 0 || calls.some((call) => !isFinal(call))) return null;
  if (openBackground(state).length > 0) return null;
  if (calls.length > 0) return undoStep(state) ?? { type: 'append_results' };
  const undoing = undoStep(state);
  return undoing !== null || hasEarlier(state) ? undoing : ending(state, 'cancelled');
}

function isIdle(state: SessionState, call: ToolCall): boolean {
  return !isFinal(call) && (!isOpen(call) || isGivenUp(state, call));
}

function interrupt(state: SessionState, calls: readonly ToolCall[]): Step | null {
  const stopping = stopFirst(state, ({ kind }) => kind === 'model' || kind === 'reads');
  if (stopping !== null) return stopping;
  const idle = calls.find(
    (call) => isIdle(state, call) && call.status.kind !== 'preparing' && !isCompensation(call),
  );
  if (idle === undefined) return null;
  return { type: 'skip_call', callId: idle.id, reason: 'A new message of the user came first.' };
}

function decideBatch(state: SessionState, calls: readonly ToolCall[], moment: Moment): Step | null {
  const undoing = undoStep(state);
  if (undoing !== null) return undoing;
  const reads: ToolCall[] = [];
  for (const [index, call] of calls.entries()) {
    if (call.status.kind === 'deferred') {
      const target = theCall(state, call.status.to);
      if (isFinal(target)) return answerOrRelease(call, target);
    }
    if (call.status.kind !== 'ready' || !isItsTurn(state, calls.slice(0, index), call)) continue;
    const answer = answerOf(state, call);
    if (answer !== null) return answer;
    const capped = capStep(state, call, reads.length);
    if (capped !== null && reads.length === 0) return capped;
    if (capped !== null) break;
    if (isDelegated(state, call)) {
      const reason = delegationProblem(state, call);
      if (reason !== null) return { type: 'skip_call', callId: call.id, reason };
      if (!isCrowded(state, call)) return poolOfTree(state) ?? attachStep(state, call);
      continue;
    }
    if (call.scope === 'global') return attachStep(state, call);
    if (call.effect !== 'read') return { type: 'issue', callId: call.id, command: toolCommand(state, call) };
    // An equal read waits for the first one, and is answered from its record.
    const isTwin = reads.some(({ idempotencyKey: key }) => key === call.idempotencyKey);
    if (call.scope === 'call' || !isTwin) reads.push(call);
  }
  if (reads.length > 0) {
    const step = issueReads(state, reads, !isFull(moment));
    // The reply of the same activity may ask for reads again, so there may be no other moment without an activity.
    const isChain = step.type === 'issue' && step.command.kind === 'model';
    return (isChain ? storeInReads(state, moment) : null) ?? step;
  }
  return calls.every(isFinal) ? { type: 'append_results' } : null;
}

/**
 * Whether a call may run beside the unfinished calls before it. In the order `ordered`, reads run beside reads and
 * sub-agents beside sub-agents; any other call runs alone.
 */
function isItsTurn(state: SessionState, before: readonly ToolCall[], call: ToolCall): boolean {
  if (state.manifest?.toolOrder === 'parallel' && !isCompensation(call)) return true;
  const sideBySide = isDelegated(state, call)
    ? (other: ToolCall) => isDelegated(state, other)
    : (other: ToolCall) => other.effect === 'read' && call.effect === 'read';
  return before.every((other) => isFinal(other) || sideBySide(other));
}

/** The step instead of a first dispatch that a cap does not allow. `beside`: how many calls are dispatched with it. */
function capStep(state: SessionState, call: ToolCall, beside: number): Step | null {
  if (call.dispatches.length > 0 || isCompensation(call)) return null;
  const over = exceeded(state, { nanoUsd: 0, tokens: 0, turns: 0, toolCalls: beside + 1 });
  if (over === null) return null;
  if (!state.finishing) return budgetWait(state, over);
  return { type: 'skip_call', callId: call.id, reason: 'The budget of this session is used up.' };
}

function budgetWait({ sessionId }: SessionState, { message, ...over }: Exceeded): Step {
  return {
    type: 'wait',
    wait: { reason: 'budget', message, next: { action: 'budget', sessionId, ...over } },
  };
}

/** Whether this run's history is too large for another model call. */
function isFull({ historyEvents, historyBytes }: Moment): boolean {
  return historyEvents >= LIMIT.historyEvents || historyBytes >= LIMIT.historyBytes;
}

/** Decides between batches: the session takes messages, then asks the model, or rests. */
function decideTurn(state: SessionState, moment: Moment): Step | null {
  if (hasQueued(state)) return checkIdsStep(state) ?? { type: 'take_messages' };
  const last = lastMessage(state);
  if (last === undefined) return null;
  if (state.effect !== null && !state.finishing) {
    // An effect that certainly did not happen leaves no record: the next call executes it.
    const kept = state.calls.some(isAnswered);
    if (state.inFlight.some(({ kind }) => kind === 'ttl' || kind === 'report')) return null;
    if (!kept) return { type: 'close', result: { status: 'completed', text: '', turns: 0 } };
    const command = { kind: 'timer', seq: state.seq + 1, ms: state.effect.ttlMs, summary: 'kept' } as const;
    return { type: 'issue', command };
  }
  if (state.effect !== null) {
    if (isReporting(state)) return null;
    return { type: 'close', result: { status: 'completed', text: '', turns: 0 } };
  }
  if (last.role === 'assistant') {
    if (state.mode === 'chat' && !state.finishing) return storeStep(state, moment);
    if (isAnswering(state)) return null;
    return openBackground(state).length > 0 ? storeStep(state, moment) : ending(state, 'completed');
  }
  const store = storeStep(state, moment);
  if (store !== null) return store;
  if (isFull(moment)) {
    const message =
      `the history of this run has ${moment.historyEvents} events and ${moment.historyBytes} bytes, close to the limits of ` +
      'Temporal. Rewind the session to its latest checkpoint: it continues in a new run. Or fork it: another session, ' +
      'with idempotency keys of its own, continues from here';
    return {
      type: 'wait',
      wait: { reason: 'history_limit', message, next: { action: 'fork', sessionId: state.sessionId } },
    };
  }
  const compact = compaction(state);
  const reserve = worstCase(state, addedBytes(defined({ compact })));
  // A compaction is not a turn, but it is of no use without the turn after it.
  const over = exceeded(state, { ...reserve, turns: 1, toolCalls: 0 });
  if (over !== null) {
    // When the side answer ends, its reserve may be enough.
    if (isAnswering(state)) return null;
    return state.finishing ? { type: 'raise_for_summary', ...reserve } : budgetWait(state, over);
  }
  if (state.limited !== undefined) return limitedStep(state);
  const drawing = drawStep(state, reserve);
  if (drawing !== null) return drawing;
  if (state.resting) {
    if (state.inFlight.some(({ kind }) => kind === 'model_backoff')) return null;
    const ms = Math.min(MODEL_BACKOFF.maxMs, MODEL_BACKOFF.firstMs * 2 ** (state.workersLost - 2));
    const summary = `waits after ${state.workersLost} lost workers`;
    return { type: 'issue', command: { kind: 'timer', seq: state.seq + 1, ms, summary } };
  }
  return { type: 'issue', command: modelCommand(state, undefined, compact) };
}
