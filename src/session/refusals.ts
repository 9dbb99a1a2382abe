/** Decides whether input from people and programs is refused. */
import { type Decision, dispatchNoOf, type ToolCall } from '../contract/calls.ts';
import type { ErrorCode } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';
import { effectId } from '../contract/workflow-ids.ts';
import { approverProblem } from './approvers.ts';
import { editProblem } from './edit.ts';
import type { PersonInput } from './events.ts';
import { answerProblem, seenDigest } from './question.ts';
import { editMessageProblem, withdrawProblem } from './queue.ts';
import type { Refusal } from './refusal.ts';
import { findCall, isOpen, phaseOf } from './state.ts';
import { childOf } from './sub-agents.ts';
import { isCompensation } from './undo.ts';

/**
 * Why an input is refused in this state, or `null`. Update validators ask this, and the session asks again when it
 * applies the input, because another input may have come first.
 */
export function refusalOf(state: SessionState, input: PersonInput): Refusal | null {
  if (state.status.kind !== 'active') {
    const { kind } = state.status;
    const message = `session ${state.sessionId} is ${kind}. Start a new one`;
    return refuse('SESSION_CLOSED', message, { status: kind });
  }
  switch (input.type) {
    case 'send':
      if (state.mode === 'effect') {
        return refuse('INVALID_ARGUMENT', `${state.sessionId} is a global effect and takes no messages`);
      }
      if (state.ending !== undefined) {
        const message = `session ${state.sessionId} has told ${state.parent?.sessionId} its answer. Start a new one`;
        return refuse('SESSION_CLOSED', message, { phase: phaseOf(state) });
      }
      if (state.cancelling !== null) {
        const message = `session ${state.sessionId} is being cancelled. Start a new one`;
        return refuse('SESSION_CLOSED', message, { phase: 'cancelling' });
      }
      return null;
    case 'decide': {
      const call = findCall(state, input.value.callId);
      if (call === undefined) return unknownCall(state, input.value.callId);
      const isAsleep = call.status.kind === 'sleeping' && input.value.decision.decision !== 'edit';
      if (call.status.kind !== 'approval' && !isAsleep) return notPending(call);
      if (isCompensation(call) && input.value.decision.decision === 'edit') {
        const message = `call ${call.id} undoes ${call.compensates?.callId ?? ''} and takes the arguments on record. Approve it, reject it, or respond if it was undone by hand`;
        return refuse('INVALID_ARGUMENT', message, { callId: call.id });
      }
      const problem = approverProblem(state, call, input.value);
      return (
        otherArguments(call, input.value.argsDigest) ??
        answerProblem(call, input.value.decision as Decision) ??
        (problem && { code: 'FORBIDDEN' as const, ...problem })
      );
    }
    case 'resolve': {
      const call = findCall(state, input.value.callId);
      if (call === undefined) return unknownCall(state, input.value.callId);
      if (call.status.kind === 'awaiting') {
        const child = childOf(state, call)?.sessionId;
        const effect = child ?? effectId(call.idempotencyKey);
        const what = child === undefined ? 'global effect' : 'sub-agent';
        const message = `call ${call.id} waits for its ${what}. Resolve it in session ${effect}`;
        return refuse('CALL_NOT_PENDING', message, { callId: call.id, status: 'awaiting', effect });
      }
      if (call.status.kind !== 'unknown' && call.status.kind !== 'stuck') {
        return refuse(
          'CALL_NOT_PENDING',
          `call ${call.id} is ${call.status.kind}: its outcome is not unknown`,
          { callId: call.id, status: call.status.kind, resolutions: call.resolutions },
        );
      }
      return otherArguments(call, input.value.argsDigest) ?? otherDispatch(call, input.value.dispatchNo);
    }
    case 'budget':
      if (input.value.limits === undefined && input.value.finish !== true) {
        return refuse('INVALID_ARGUMENT', 'limits: pass new caps, or finish: true', { field: 'limits' });
      }
      if (input.value.limits?.usd !== undefined) {
        const free = state.manifest?.models.find(({ price }) => price === null);
        if (free !== undefined) {
          const message = `limits.usd: model ${free.id} has no price, so there can be no usd cap. Cap tokens, or set its price`;
          return refuse('INVALID_ARGUMENT', message, { field: 'limits.usd', model: free.id });
        }
      }
      return null;
    case 'edit': {
      const problem = editProblem(state, input.value);
      if (problem === null) return null;
      return refuse(problem.busy ? 'SESSION_BUSY' : 'INVALID_ARGUMENT', problem.message, problem.details);
    }
    case 'seal': {
      const open = state.calls.find(
        (call) => call.effect === 'mutate' && isOpen(call) && call.status.kind !== 'awaiting',
      );
      if (open === undefined) return null;
      return refuse(
        'SESSION_BUSY',
        `call ${open.id} of ${open.name} is ${open.status.kind}: a mutation is open. Wait until it settles, or resolve it`,
        { open: [open.id] },
      );
    }
    case 'withdraw':
      return withdrawProblem(state, input.value);
    case 'edit_message':
      return editMessageProblem(state, input.value);
    case 'pause':
    case 'resume':
    case 'cancel':
    case 'await_effect':
    case 'effect_done':
    case 'search_attributes':
    case 'pool_changed':
    case 'child_done':
    case 'rate_turn':
    case 'malformed':
      return null;
    default:
      return input satisfies never;
  }
}

function refuse(code: ErrorCode, message: string, details?: Refusal['details']): Refusal {
  return { code, message, ...(details === undefined ? {} : { details }) };
}

export function unknownCall(state: SessionState, callId: string): Refusal {
  const pending = state.calls.filter(({ status }) => status.kind === 'approval').map(({ id }) => id);
  return refuse(
    'UNKNOWN_CALL',
    `callId: session ${state.sessionId} has no call ${callId}${state.past === undefined ? '' : ', or it has ended in an earlier run'}; ` +
      (pending.length > 0 ? `waiting for approval: ${pending.join(', ')}` : 'no call waits for approval'),
    { callId, pending },
  );
}

function otherArguments(call: ToolCall, seen: string): Refusal | null {
  const digest = seenDigest(call);
  if (seen === digest) return null;
  const asks = digest === call.argsDigest ? 'the arguments' : 'the arguments or the question';
  const message = `${asks} of call ${call.id} have changed: their digest is ${digest}, not ${seen}. Read the call again`;
  return refuse('DIGEST_MISMATCH', message, { callId: call.id, argsDigest: digest });
}

/** A resolution of an earlier dispatch says nothing about the last one, which may have happened. */
function otherDispatch(call: ToolCall, seen: number): Refusal | null {
  const dispatchNo = dispatchNoOf(call);
  if (seen === dispatchNo) return null;
  const { id: callId, resolutions } = call;
  const last = resolutions.at(-1);
  const message =
    `call ${callId} is at dispatch ${dispatchNo}, not ${seen}` +
    (last === undefined
      ? ''
      : `: ${last.by} said ${last.outcome} of dispatch ${last.dispatchNo} at ${last.at}`) +
    '. Read the call again';
  return refuse('DISPATCH_MISMATCH', message, { callId, dispatchNo, resolutions });
}

function notPending({ id, status, decision }: ToolCall): Refusal {
  const message =
    decision === null
      ? `call ${id} is ${status.kind} and does not wait for approval`
      : `call ${id} is already decided: ${decision.decision} by ${decision.by} at ${decision.at}`;
  const won = decision && { decision: decision.decision, by: decision.by, at: decision.at };
  return refuse('CALL_NOT_PENDING', message, { callId: id, status: status.kind, decision: won });
}
