/** Input from people and programs: when it is refused, and what it changes. */

import {
  type Decision,
  type DecisionRecord,
  dispatchNoOf,
  type ResolutionRecord,
  type ToolCall,
  UNNAMED,
} from '../contract/calls.ts';
import type { ErrorCode } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import { argsDigest } from '../contract/keys.ts';
import type { SessionState } from '../contract/state.ts';
import { effectId } from '../contract/workflow-ids.ts';
import { approverProblem, takesMore } from './approvers.ts';
import { mayAnswerAside } from './aside.ts';
import { lookAtAll } from './background.ts';
import { wake } from './built-in.ts';
import { applyEdit, editProblem } from './edit.ts';
import { readyAgain } from './effect-outcome.ts';
import type { Moment, PersonInput } from './events.ts';
import { addWaiter, lookAtEffect } from './global-effect.ts';
import { takeTurn } from './limited.ts';
import { answerProblem, seenDigest, takeAnswer } from './question.ts';
import { editMessage, editMessageProblem, withdraw, withdrawProblem } from './queue.ts';
import type { Refusal } from './refusal.ts';
import {
  definedLimits,
  endCall,
  findCall,
  freshMessageId,
  hasMessage,
  isOpen,
  iso,
  note,
  pause,
  phaseOf,
} from './state.ts';
import { resumeChildren } from './steer.ts';
import { applyChildEnd, childOf } from './sub-agents.ts';
import { mayBeTaken } from './taken-ids.ts';
import { isCompensation, requestUndo } from './undo.ts';

/**
 * Whether an input would be refused in this state: what update validators ask, and what is asked again when
 * the input is applied, because another may have come first.
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

function unknownCall(state: SessionState, callId: string): Refusal {
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

/** Applies an input, or refuses it and changes nothing. */
export function applyPerson(state: SessionState, input: PersonInput, moment: Moment): Refusal | null {
  const refusal = refusalOf(state, input);
  if (refusal !== null) return refusal;
  const at = iso(moment);
  switch (input.type) {
    case 'send': {
      const { text, blocks, id, mode, pin, by = UNNAMED, verified } = input.value;
      if (id !== undefined && hasMessage(state, id)) return null;
      const isDoubtful = id !== undefined && mayBeTaken(state.past?.taken, id);
      state.inbox.push({
        id: id ?? freshMessageId(state),
        text,
        ...defined({ blocks }),
        ...(pin === true ? { pin } : {}),
        by,
        ...defined({ verified }),
        at,
        ...(isDoubtful ? { check: true as const } : {}),
        ...(mode === 'aside' && !isDoubtful && mayAnswerAside(state) ? { aside: true as const } : {}),
      });
      // One that was taken before must not end a turn again.
      if (mode === 'interrupt' && !isDoubtful && phaseOf(state) !== 'idle') state.interrupted = true;
      if (state.wait?.reason === 'loop') {
        // The loop waited for a person: the message replaces the repeated calls.
        state.wait = null;
        state.interrupted = true;
      }
      return null;
    }
    case 'pause': {
      const { by = UNNAMED, reason = '', now = false } = input.value;
      if (state.paused !== null) {
        state.paused.requestedNow ||= now;
        return null;
      }
      pause(state, { by, at, reason, requestedNow: now });
      return null;
    }
    case 'resume': {
      if (state.paused !== null) {
        state.paused = null;
        const pause = state.pauses.at(-1);
        if (pause !== undefined) pause.resumedAt = at;
      }
      state.wait = null;
      delete state.limited;
      if (state.manifest?.runsAtRest === true) delete state.notBeforeTurn;
      delete state.away;
      state.sealed = null;
      state.modelFailures = 0;
      state.resting = false;
      state.fromModel = 0;
      delete state.compaction;
      state.loop.count = 0;
      resumeChildren(state);
      lookAtAll(state);
      for (const call of state.calls) {
        if (call.status.kind === 'stuck') call.status = { kind: 'ready' };
        else lookAtEffect(state, call);
      }
      return null;
    }
    case 'cancel': {
      const { by = UNNAMED, verified, reason = '', undo, whole } = input.value;
      state.cancelling ??= { by, at, reason };
      requestUndo(state, undo, { by, ...defined({ verified, whole }), at }, moment);
      return null;
    }
    case 'decide': {
      const call = findCall(state, input.value.callId);
      if (call === undefined) return unknownCall(state, input.value.callId);
      const { by = UNNAMED, verified } = input.value;
      if (call.status.kind === 'sleeping' && input.value.decision.decision === 'approve') {
        call.decision = { decision: 'approve', by, ...defined({ verified }), at };
        wake(call, by, moment);
        return null;
      }
      decide(call, input.value.decision as Decision, { by, ...defined({ verified }), at });
      return null;
    }
    case 'resolve': {
      const { callId, dispatchNo, resolution, by = UNNAMED, verified } = input.value;
      const call = findCall(state, callId);
      if (call === undefined) return unknownCall(state, callId);
      const { outcome } = resolution;
      const said: ResolutionRecord = { dispatchNo, outcome, by, ...defined({ verified }), at };
      if (resolution.outcome === 'failed' && resolution.reason !== undefined) said.reason = resolution.reason;
      call.resolutions.push(said);
      const dispatch = call.dispatches.at(-1);
      if (dispatch !== undefined && resolution.outcome !== 'failed') dispatch.outcome = resolution.outcome;
      if (resolution.outcome === 'landed') {
        endCall(call, { kind: 'completed' }, { content: resolution.output, isError: false }, at);
      } else if (resolution.outcome === 'absent') {
        readyAgain(state, call);
      } else {
        const content = `${call.name} failed: ${resolution.reason ?? 'a person says that it failed'}`;
        endCall(call, { kind: 'failed', certain: false }, { content, isError: true }, at);
      }
      return null;
    }
    case 'budget': {
      Object.assign(state.budget.limits, definedLimits(input.value.limits ?? {}));
      if (input.value.finish === true) state.finishing = true;
      if (state.wait?.reason === 'budget') state.wait = null;
      note(state, moment, 'budget', `${input.value.by ?? UNNAMED} set ${JSON.stringify(input.value)}`);
      return null;
    }
    case 'edit':
      applyEdit(state, input.value, moment);
      return null;
    case 'seal':
      state.sealed ??= { by: input.value.by ?? UNNAMED, at, reason: input.value.reason ?? '' };
      return null;
    case 'withdraw':
      withdraw(state, input.value, moment);
      return null;
    case 'edit_message':
      editMessage(state, input.value, moment);
      return null;
    case 'await_effect':
      addWaiter(state, input.value);
      return null;
    case 'effect_done': {
      const call = findCall(state, input.value.callId);
      if (call !== undefined) lookAtEffect(state, call);
      return null;
    }
    case 'search_attributes': {
      const lost = state.searchAttributes.filter((name) => !input.value.known.includes(name));
      if (lost.length === 0) return null;
      state.searchAttributes = state.searchAttributes.filter((name) => !lost.includes(name));
      const message = `the server does not know ${lost.join(', ')} as Keyword any more, so lists show old values. Look: perdure doctor`;
      note(state, moment, 'search_attributes', message);
      return null;
    }
    case 'pool_changed':
      if (state.pool?.id === input.value.pool) state.pool.due = true;
      return null;
    case 'child_done':
      applyChildEnd(state, input.value.child, input.value.end, moment);
      return null;
    case 'rate_turn':
      takeTurn(state);
      return null;
    case 'malformed':
      note(state, moment, 'malformed_signal', `signal ${input.name} was ignored: ${input.message}`);
      return null;
    default:
      return input satisfies never;
  }
}

function decide(call: ToolCall, decision: Decision, who: Omit<DecisionRecord, 'decision'>): void {
  const { at } = who;
  if (decision.decision === 'respond' && takeAnswer(call, decision.output, who)) return;
  const given = call.approvers?.given;
  const record: DecisionRecord = { decision: decision.decision, ...who };
  const more = takesMore(call, record);
  if (more && decision.decision === 'approve') return;
  call.decision = record;
  switch (decision.decision) {
    case 'approve': {
      // Edited arguments that were refused have no key yet: check them again.
      const { status } = call;
      const unchecked = status.kind === 'approval' && status.problem !== undefined;
      call.status = unchecked
        ? {
            kind: 'preparing',
            before: { args: call.args, expiresAt: status.expiresAt, ...defined({ given }) },
          }
        : { kind: 'ready' };
      return;
    }
    case 'edit': {
      const expiresAt = call.status.kind === 'approval' ? call.status.expiresAt : null;
      call.status = { kind: 'preparing', before: { args: call.args, expiresAt, ...defined({ given }) } };
      call.args = decision.args;
      call.argsDigest = argsDigest(call.name, decision.args);
      return;
    }
    case 'reject': {
      const reason = decision.reason ?? '';
      if (reason !== '') call.decision.reason = reason;
      const asked = call.status.kind === 'approval' ? call.status.question : undefined;
      const what =
        asked === undefined ? 'rejected' : `did not answer the question "${asked.text}", and so ended`;
      const content = `A person ${what} this call of ${call.name}${reason === '' ? '.' : `: ${reason}`}`;
      endCall(call, { kind: 'skipped' }, { content, isError: true }, at);
      return;
    }
    case 'respond':
      // Of a compensation, it says that somebody has undone the effect.
      endCall(
        call,
        { kind: isCompensation(call) ? 'completed' : 'skipped' },
        { content: decision.output, isError: false },
        at,
      );
      return;
    default:
      decision satisfies never;
  }
}
