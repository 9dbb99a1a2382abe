/** Applies the outcomes of the effect protocol: of dispatches, verifications, and checks of edited arguments. */
import type { ToolResult } from '../contract/activities.ts';
import type { Dispatch, EffectOutcome, ToolCall } from '../contract/calls.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import { defined } from '../contract/json.ts';
import { argsDigest } from '../contract/keys.ts';
import type { ToolManifest } from '../contract/manifest.ts';
import type { CallResult } from '../contract/messages.ts';
import type { PreparedCall, ToolOutput } from '../contract/model-call.ts';
import type { CarriedEffect } from '../contract/origin.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { expiryFrom, isPartly, rulesOf } from './approvers.ts';
import { setKey } from './effect-key.ts';
import type { Moment } from './events.ts';
import { setManifest } from './manifest.ts';
import { askQuestion } from './question.ts';
import { replayCall } from './replay.ts';
import { endCall, iso, isUntold, toolOf } from './state.ts';
import { isCompensation } from './undo.ts';

export function applyTool(
  state: SessionState,
  call: ToolCall,
  flight: InFlight,
  outcome: ActivityOutcome<ToolResult>,
  moment: Moment,
): void {
  const dispatch = call.dispatches.at(-1);
  if (dispatch === undefined || call.status.kind !== 'running') return;
  const record = (result: 'returned' | 'landed' | 'absent' | 'unknown', reason?: string): void => {
    dispatch.outcome = result;
    if (reason !== undefined) dispatch.reason = reason;
  };
  if (!outcome.ok) {
    const reason = outcome.failure.message;
    if (call.effect === 'mutate') {
      const { kind, unbegun } = outcome.failure;
      // Unless a successor reported it, silence proves this only if the worker had to mark the call before it began.
      if (unbegun === true && (kind === 'lost' || marksFirst(state, call, dispatch.no)))
        dispatch.unbegun = true;
      if (unbegun === true && kind === 'lost') {
        // The worker died before it began the call: there is nothing to settle, to verify, or to ask a person.
        record('absent', reason);
        call.status = { kind: isUnbegunAgain(call) ? 'backoff' : 'ready' };
        return;
      }
      record('unknown', reason);
      call.status = { kind: 'settling', reason };
    } else if (flight.cancelled === true) {
      // The call is safe to repeat: it runs again after a pause. Otherwise the turn is over.
      record(stopped(call), reason);
      call.status = { kind: 'ready' };
    } else {
      record('unknown', reason);
      fail(call, `${call.name} gave no result: ${reason}`, false, iso(moment));
    }
    return;
  }
  const result = outcome.value;
  const at = iso(moment);
  switch (result.kind) {
    case 'output':
      record('returned');
      endCall(call, { kind: 'completed' }, toldOf(result), at);
      return;
    case 'asks':
      askQuestion(state, call, dispatch, result.question, at);
      return;
    case 'replay':
      record('absent', `answered from the record of ${result.of}`);
      dispatch.unbegun = true;
      state.budget.spent.toolCalls -= 1;
      replayCall(state, call, result, moment);
      return;
    case 'error':
      // The tool was declared a mutation while it ran. A global effect returns an error only if a person said so.
      if (call.effect === 'mutate' && flight.kind === 'tool') {
        record('unknown', result.message);
        call.status = { kind: 'settling', reason: result.message };
        return;
      }
      record('returned', result.message);
      fail(call, result.message, false, at);
      return;
    case 'absent':
      record('absent', result.reason);
      if (result.unbegun === true) dispatch.unbegun = true;
      if (result.retryable && mayDispatchAgain(state, call)) {
        call.status = { kind: 'backoff' };
      } else {
        fail(call, `${call.name} was not executed: ${result.reason}`, true, at);
      }
      return;
    case 'unknown':
      record('unknown', result.reason);
      if (result.released === true) dispatch.released = true;
      call.status = { kind: 'settling', reason: result.reason };
      return;
    case 'released': {
      const reason = 'its worker was shut down';
      dispatch.released = true;
      record(call.effect === 'mutate' ? 'unknown' : stopped(call), reason);
      call.status = call.effect === 'mutate' ? { kind: 'settling', reason } : { kind: 'ready' };
      return;
    }
    case 'manifest':
      notRun(dispatch, result);
      call.status = { kind: 'ready' };
      setManifest(state, result.manifest, moment);
      // The new definition may ask for an approval.
      if (call.status.kind === 'ready') call.status = { kind: 'preparing' };
      return;
    case 'unavailable':
      record('absent', result.message);
      dispatch.unbegun = true;
      call.status = { kind: 'stuck', reason: result.message, ...defined({ misfit: result.misfit }) };
      return;
    default:
      result satisfies never;
  }
}

/** Records that a worker ran nothing because it has another definition. An earlier attempt may have run elsewhere. */
export function notRun(dispatch: Dispatch, { again }: { again?: true }): void {
  dispatch.outcome = again === true ? 'unknown' : 'absent';
  dispatch.reason = 'the worker has another definition';
  if (again !== true) dispatch.unbegun = true;
}

/** What the model is told about an output. */
export function toldOf({ output, modelOutput, value }: ToolOutput): CallResult {
  return { content: output, isError: false, ...defined({ modelOutput, value }) };
}

/**
 * The outcome of a call that was stopped after its dispatch. A read did nothing; an idempotent call may have happened.
 */
export function stopped({ effect }: ToolCall): 'absent' | 'unknown' {
  return effect === 'idempotent' ? 'unknown' : 'absent';
}

/**
 * Whether a call has attempts left. A dispatch that certainly did not begin, or that asked a person, does not count.
 * Nor does a dispatch that a deploy cut short: otherwise a call that takes longer than the deploy's grace would fail
 * after a few deploys.
 */
function mayDispatchAgain(state: SessionState, call: ToolCall): boolean {
  const counted = call.dispatches.filter(
    ({ released, unbegun, asked }) => released !== true && unbegun !== true && asked !== true,
  ).length;
  return counted < (toolOf(state, call)?.maxAttempts ?? 1);
}

/** Whether the last two dispatches did not begin. They do not count, so there must be a pause between them. */
function isUnbegunAgain({ dispatches }: ToolCall): boolean {
  return dispatches.slice(-2).filter(({ unbegun }) => unbegun === true).length === 2;
}

/**
 * Whether the worker must mark a dispatch of a mutation before the tool begins. A first dispatch of a tool with further
 * attempts goes without a mark: that saves a request, and the dispatch then counts as begun.
 */
export function marksFirst(state: SessionState, call: ToolCall, dispatchNo: number): boolean {
  return dispatchNo > 1 || toolOf(state, call)?.maxAttempts === 1;
}

/** Ends a call that failed. A compensation that failed waits for a person instead, who sees why. */
function fail(call: ToolCall, content: string, certain: boolean, at: string): void {
  if (isCompensation(call)) {
    call.status = { kind: 'stuck', reason: content, failed: true };
    return;
  }
  endCall(call, { kind: 'failed', certain }, { content, isError: true }, at);
}

export function applyVerify(state: SessionState, call: ToolCall, found: EffectOutcome, moment: Moment): void {
  if (call.status.kind !== 'verifying') return;
  const dispatch = call.dispatches.at(-1);
  if (dispatch !== undefined) {
    dispatch.outcome = found.outcome;
    if (found.outcome !== 'landed') dispatch.reason = `${dispatch.reason ?? ''}; verify: ${found.reason}`;
  }
  switch (found.outcome) {
    case 'landed':
      endCall(call, { kind: 'completed' }, toldOf(found), iso(moment));
      return;
    case 'absent':
      if (!mayDispatchAgain(state, call))
        fail(call, `${call.name} was not executed: ${dispatch?.reason ?? found.reason}`, true, iso(moment));
      else if (isUnbegunAgain(call)) call.status = { kind: 'backoff' };
      else readyAgain(state, call);
      return;
    case 'unknown':
      call.status = { kind: 'unknown', reason: found.reason };
      return;
    default:
      found satisfies never;
  }
}

export function applyPrepare(
  state: SessionState,
  call: ToolCall,
  outcome: ActivityOutcome<PreparedCall>,
  moment: Moment,
): void {
  if (call.status.kind !== 'preparing') return;
  const { before } = call.status;
  const untold = isUntold(call);
  const problem = outcome.ok ? outcome.value.problem : outcome.failure.message;
  if (problem === undefined && outcome.ok) {
    const { identity, needsApproval } = outcome.value;
    setKey(state, call, identity);
    if (untold && knownSince(state, call, moment)) return;
    if (isPartly(call)) {
      // Others must approve the edited arguments, too.
      call.decision = null;
      const { expiresAt } = before ?? expiryFrom(toolOf(state, call), iso(moment));
      call.status = { kind: 'approval', expiresAt };
    } else if (needsApproval === true && call.decision === null) {
      awaitApproval(call, toolOf(state, call), iso(moment));
    } else call.status = { kind: 'ready' };
    return;
  }
  call.decision = null;
  if (call.approvers === undefined) Object.assign(call, rulesOf(toolOf(state, call)));
  else call.approvers.given = before?.given ?? [];
  if (before !== undefined) {
    call.args = before.args;
    call.argsDigest = argsDigest(call.name, before.args);
  }
  if (untold && knownSince(state, call, moment)) return;
  call.status = { kind: 'approval', expiresAt: before?.expiresAt ?? null, problem: problem ?? 'invalid' };
}

/**
 * Takes over what happened to a call after a rewind's checkpoint, at which its edit was still unchecked. So the call is
 * not skipped.
 *
 * @returns whether anything is known
 */
function knownSince(state: SessionState, call: ToolCall, moment: Moment): boolean {
  const isOfCall = (effect: CarriedEffect): boolean =>
    effect.callId === call.id &&
    effect.idempotencyKey === call.idempotencyKey &&
    effect.undone !== true &&
    // The call of a sub-agent in the background finds that sub-agent's session.
    (effect.open !== true || effect.doubt !== undefined);
  const since = state.carried.find(isOfCall);
  if (since === undefined) return false;
  if (since.doubt === undefined) {
    endCall(call, { kind: 'completed' }, { content: since.output, isError: false }, iso(moment));
  } else {
    state.carried = state.carried.filter((effect) => !isOfCall(effect));
    call.status = { kind: 'settling', reason: since.doubt };
  }
  return true;
}

/** Ends a call's wait. A lost call has settled and is verified next; a call that was held back is ready. */
export function releaseCall(state: SessionState, call: ToolCall): void {
  if (call.status.kind === 'settling') {
    const { reason } = call.status;
    const tool = toolOf(state, call);
    const verifiable = (isCompensation(call) ? tool?.compensate?.verify : tool?.verify) === true;
    call.status = verifiable ? { kind: 'verifying', reason } : { kind: 'unknown', reason };
  } else if (call.status.kind === 'backoff' || call.status.kind === 'deferred') {
    call.status = { kind: 'ready' };
  }
}

/**
 * Makes a call ready that certainly did not happen. If only the past of a rewind or fork dispatched the call, the
 * worker prepares it again: it may need an approval, and in a fork a key of its own.
 */
export function readyAgain(state: SessionState, call: ToolCall): void {
  const unasked = (call.dispatches.length === 0 && call.decision === null) || isPartly(call);
  if (isCompensation(call)) {
    // A compensation has no arguments to check.
    call.status = unasked ? { kind: 'approval', expiresAt: null } : { kind: 'ready' };
    return;
  }
  call.status = { kind: unasked || state.origin?.kind === 'fork' ? 'preparing' : 'ready' };
}

/** Lets a call wait for the approval that its tool asks for. */
export function awaitApproval(call: ToolCall, tool: ToolManifest | undefined, at: string): void {
  delete call.approvers;
  Object.assign(call, rulesOf(tool));
  call.status = { kind: 'approval', ...expiryFrom(tool, at) };
}
