/** Applies input from people and programs to the state. */

import {
  type Decision,
  type DecisionRecord,
  type ResolutionRecord,
  type ToolCall,
  UNNAMED,
} from '../contract/calls.ts';
import { STOPPED_IN_CHAT } from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import { argsDigest } from '../contract/keys.ts';
import type { SessionState } from '../contract/state.ts';
import { takesMore } from './approvers.ts';
import { mayAnswerAside } from './aside.ts';
import { lookAtAll } from './background.ts';
import { wake } from './built-in.ts';
import { applyEdit } from './edit.ts';
import { decides } from './edition.ts';
import { readyAgain } from './effect-outcome.ts';
import type { Moment, PersonInput } from './events.ts';
import { addWaiter, lookAtEffect } from './global-effect.ts';
import { takeTurn } from './limited.ts';
import { noteDropped } from './past.ts';
import { takeAnswer } from './question.ts';
import { editMessage, withdraw } from './queue.ts';
import type { Refusal } from './refusal.ts';
import { refusalOf, unknownCall } from './refusals.ts';
import { contradicts } from './said.ts';
import {
  definedLimits,
  endCall,
  findCall,
  freshMessageId,
  hasMessage,
  iso,
  messageBlocks,
  note,
  pause,
  phaseOf,
} from './state.ts';
import { resumeChildren } from './steer.ts';
import { applyChildEnd } from './sub-agents.ts';
import { mayBeTaken } from './taken-ids.ts';
import { isCompensation, requestUndo } from './undo.ts';

/** Applies an input, or refuses it and changes nothing. */
export function applyPerson(state: SessionState, input: PersonInput, moment: Moment): Refusal | null {
  const refusal = refusalOf(state, input);
  if (refusal !== null) return refusal;
  const at = iso(moment);
  switch (input.type) {
    case 'send': {
      const { text, blocks, id, mode, pin, by = UNNAMED, verified } = input.value;
      if (id !== undefined && hasMessage(state, id)) {
        // The validator refuses such an update. A signal has none.
        if (decides(state, 'knowsLostMessages') && contradicts(state, id, messageBlocks(input.value)))
          noteDropped(state, id, moment);
        return null;
      }
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
      // A message that an earlier run may have taken must not end a turn again.
      if (mode === 'interrupt' && !isDoubtful && phaseOf(state) !== 'idle') state.interrupted = true;
      if (state.wait?.reason === 'loop') {
        // The session waited because of a loop: the message replaces the repeated calls.
        state.wait = null;
        state.interrupted = true;
      }
      return null;
    }
    case 'pause': {
      const { by = UNNAMED, reason = '', now = false } = input.value;
      const { paused } = state;
      const isOverStop = paused?.reason === STOPPED_IN_CHAT && reason !== STOPPED_IN_CHAT;
      if (isOverStop && decides(state, 'pausesOverStop')) endPause(state, by, at);
      const requestedNow = now || paused?.requestedNow === true;
      if (state.paused === null) pause(state, { by, at, reason, requestedNow });
      else state.paused.requestedNow = requestedNow;
      return null;
    }
    case 'resume': {
      const { pausedFor } = input.value;
      if (pausedFor !== undefined && state.paused?.reason !== pausedFor) return null;
      if (state.paused !== null) endPause(state, input.value.by ?? UNNAMED, at);
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

function endPause(state: SessionState, resumedBy: string, resumedAt: string): void {
  state.paused = null;
  Object.assign(state.pauses.at(-1) ?? {}, { resumedAt, resumedBy });
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
      // Arguments that were refused after an edit have no key yet: check them again.
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
      // The answer to a compensation says that somebody has undone the effect.
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
