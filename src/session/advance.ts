/** The entry of the pure core: it takes inputs, changes the state, and returns commands. */
import { UNNAMED } from '../contract/calls.ts';
import { defined } from '../contract/json.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { addAuthor } from './approvers.ts';
import { asideBytes, queueAside, takeQueued } from './aside.ts';
import { lookingAt } from './background.ts';
import { usd, worstCase } from './budget.ts';
import { addedBytes } from './compaction.ts';
import { decide } from './decide.ts';
import { releaseCall } from './effect-outcome.ts';
import type { Command, Input, Issued, Moment, Step } from './events.ts';
import { looking, reporting } from './global-effect.ts';
import { leaveLimit } from './limited.ts';
import { notifying } from './notify.ts';
import { applyOutcome } from './outcomes.ts';
import { leaveRun, timerMs } from './past.ts';
import { applyPerson } from './people.ts';
import { drawing } from './pool.ts';
import { appendResults } from './reads.ts';
import type { Refusal } from './refusal.ts';
import { replay, replayCall } from './replay.ts';
import {
  appendMessage,
  endCall,
  findCall,
  isActive,
  iso,
  isTimer,
  messageBlocks,
  note,
  theCall,
  wasStopped,
} from './state.ts';
import { steering } from './steer.ts';
import { delegated } from './sub-agents.ts';
import { beginUndo, markUndone } from './undo.ts';
import { stop } from './wait.ts';

/** The commands of one activation, and for each input its refusal or `null`. */
export interface Advance {
  commands: Command[];
  refusals: (Refusal | null)[];
}

/**
 * Applies all inputs of one activation of the session's workflow in their order, and then the session's own decisions,
 * until the session waits.
 *
 * Deterministic and without I/O: the same state, inputs and moment give the same result in the live workflow
 * and in the fold. It changes the state in place; pass a `structuredClone` to keep the old state.
 */
export function advance(state: SessionState, inputs: readonly Input[], moment: Moment): Advance {
  const refusals = inputs.map((input) => evolve(state, input, moment));
  const commands: Command[] = [];
  for (let step = decide(state, moment); step !== null; step = decide(state, moment)) {
    const command = take(state, step, moment);
    if (command !== null) commands.push(command);
  }
  return { commands, refusals };
}

/** Applies one input. A refused input changes nothing. */
export function evolve(state: SessionState, input: Input, moment: Moment): Refusal | null {
  if (input.type !== 'outcome') {
    const refusal = applyPerson(state, input, moment);
    leaveLimit(state);
    return refusal;
  }
  applyOutcome(state, input.seq, input.outcome, moment);
  return null;
}

/** Applies one of the session's own steps. Returns the step's command for the outside world, if it has one. */
export function take(state: SessionState, step: Step, moment: Moment): Command | null {
  const at = iso(moment);
  switch (step.type) {
    case 'issue':
      return issue(state, step, moment);
    case 'stop': {
      const index = state.inFlight.findIndex(({ seq }) => seq === step.seq);
      const flight = state.inFlight[index];
      if (flight === undefined) return null;
      const timer = isTimer(flight);
      // A timer is gone as soon as it is cancelled; an activity still answers.
      if (timer) state.inFlight.splice(index, 1);
      else flight.cancelled = true;
      return { kind: 'cancel', seq: step.seq, timer };
    }
    case 'take_messages': {
      const taken = takeQueued(state);
      for (const message of taken) {
        const { id, at: created_at, pin: pinned, verified, report } = message;
        // A report asks for nothing: an equal call after it still answers the user's message.
        if (report === undefined) {
          state.messagesTaken += 1;
          state.message = state.messagesTaken;
          addAuthor(state, message.by);
        }
        const by = verified === true ? message.by : undefined;
        const blocks = messageBlocks(message);
        appendMessage(state, { id, role: 'user', created_at, blocks, ...defined({ by, pinned, report }) });
      }
      state.interrupted = false;
      delete state.misfits;
      // A user who asks again wants the calls made again.
      if (taken.some(({ report }) => report === undefined)) state.loop.count = 0;
      return null;
    }
    case 'queue_aside':
      queueAside(state, step, moment);
      return null;
    case 'append_results':
      appendResults(state, moment);
      return null;
    case 'skip_call': {
      const call = theCall(state, step.callId);
      if (wasStopped(call)) {
        const content = `${step.reason} It was stopped after its dispatch, and may have happened`;
        endCall(call, { kind: 'failed', certain: false }, { content, isError: true }, at);
        return null;
      }
      if (call.scope !== 'global' || call.dispatches.length === 0) {
        endCall(call, { kind: 'skipped' }, { content: step.reason, isError: true }, at);
        return null;
      }
      // The effect runs in a session of its own and may still happen. Only this call stops waiting for it.
      const content = `${step.reason} Its effect may still happen, in a session of its own`;
      const ended = state.cancelling !== null;
      endCall(
        call,
        ended ? { kind: 'failed', certain: false } : { kind: 'skipped' },
        { content, isError: true },
        at,
      );
      return null;
    }
    case 'replay_call': {
      const from = theCall(state, step.from);
      const status = from.status.kind === 'failed' ? from.status : ({ kind: 'completed' } as const);
      const result = from.result ?? { content: null, isError: false };
      replayCall(state, theCall(state, step.callId), { of: from.id, status, result }, moment);
      return null;
    }
    case 'replay_carried': {
      const { callId, effect } = step;
      const call = theCall(state, callId);
      const made = { of: effect.callId, where: 'before the session was rewound', content: effect.output };
      const content = replay(state, call, made, moment);
      endCall(call, { kind: 'completed' }, { content, isError: false }, at);
      return null;
    }
    case 'doubt_call': {
      const call = theCall(state, step.callId);
      // From here on the call's own record holds the doubt.
      state.carried = state.carried.filter(({ idempotencyKey: key }) => key !== call.idempotencyKey);
      call.status = { kind: 'settling', reason: step.reason };
      return null;
    }
    case 'defer_call':
      theCall(state, step.callId).status = { kind: 'deferred', to: step.to };
      return null;
    case 'release_call':
      releaseCall(state, theCall(state, step.callId));
      return null;
    case 'begin_undo':
      beginUndo(state, moment);
      return null;
    case 'mark_undone':
      markUndone(state, theCall(state, step.callId));
      return null;
    case 'wait':
      stop(state, moment, step.wait.reason, step.wait.message, step.wait.next);
      return null;
    case 'raise_for_summary':
      raiseForSummary(state, step, moment);
      return null;
    case 'continue':
      leaveRun(state);
      return { kind: 'continue' };
    case 'stay':
      delete state.continuing;
      state.notBeforeTurn = state.turn + 1;
      return null;
    case 'close':
      close(state, step.result, at);
      return { kind: 'close', result: step.result };
    default:
      return step satisfies never;
  }
}

function issue(state: SessionState, step: Extract<Step, { type: 'issue' }>, moment: Moment): Command {
  const { callId } = step;
  const at = iso(moment);
  const kind = step.timer ?? flightKind(state, step.command.kind, callId);
  const command: Issued =
    step.command.kind === 'timer'
      ? { ...step.command, ms: timerMs(state, { kind, ...defined({ callId }) }, step.command.ms, moment) }
      : step.command;
  state.seq = command.seq;
  const reserved = reserveFor(state, command);
  const reads = readsOf(command);
  if (reserved !== undefined) {
    state.budget.reserved.nanoUsd += reserved.nanoUsd;
    state.budget.reserved.tokens += reserved.tokens;
  }
  state.inFlight.push({
    seq: command.seq,
    kind,
    ...(callId === undefined ? {} : { callId }),
    ...(reads.length === 0 ? {} : { reads }),
    ...(reserved === undefined ? {} : { reserved }),
    ...(command.kind === 'aside' ? { messageId: command.messageId } : {}),
    ...(command.kind === 'timer' ? { until: new Date(moment.now + command.ms).toISOString() } : {}),
    ...(command.kind === 'model' && command.input.summarize === true ? { summarize: true as const } : {}),
    ...(command.kind === 'model' && command.input.compact !== undefined ? { compact: true as const } : {}),
    ...(command.kind === 'draw' && command.input.need === undefined ? { gives: true as const } : {}),
  });
  if (state.activeSince === null && isActive(state)) state.activeSince = at;
  const starts = command.kind === 'attach' && command.input.start !== undefined;
  const called = command.kind === 'tool' || starts ? [command.input.callId] : reads;
  for (const id of called) {
    const call = theCall(state, id);
    call.status = { kind: 'running' };
    call.issuedAt ??= at;
    if (call.dispatches.length === 0) state.budget.spent.toolCalls += 1;
    call.dispatches.push({ no: call.dispatches.length + 1, at, outcome: null });
  }
  if (command.kind === 'draw') drawing(state, command);
  if (command.kind === 'steer') steering(state, command.input);
  if (command.kind === 'notify') notifying(state, command.input, moment);
  if (starts) delegated(state, theCall(state, command.input.callId));
  if (command.kind === 'report' && command.input.end !== undefined) {
    state.ending = state.cancelling === null ? 'completed' : 'cancelled';
  } else if (command.kind === 'report') reporting(state, command.input.waiters);
  else if (command.kind === 'attach') {
    const call = findCall(state, command.input.callId);
    if (call !== undefined) looking(call);
    lookingAt(state, command.input.callId);
  }
  return command;
}

/** What the budget reserves for a command. */
function reserveFor(state: SessionState, command: Issued): InFlight['reserved'] {
  if (command.kind === 'aside') return worstCase(state, asideBytes(state, command.input.aside));
  return command.kind === 'model' ? worstCase(state, addedBytes(command.input)) : undefined;
}

/** The reads that a command runs. */
function readsOf(command: Issued): string[] {
  const reads =
    command.kind === 'reads'
      ? command.input.reads
      : command.kind === 'model'
        ? (command.input.first?.reads ?? [])
        : [];
  return reads.map(({ callId }) => callId);
}

function flightKind(
  state: SessionState,
  command: Issued['kind'],
  callId: string | undefined,
): InFlight['kind'] {
  if (command !== 'timer') return command;
  if (callId === undefined && state.wait !== null) return 'agent_recheck';
  if (callId === undefined && state.limited !== undefined) return 'rate_recheck';
  if (callId === undefined) return state.effect === null ? 'model_backoff' : 'ttl';
  const { kind } = theCall(state, callId).status;
  if (kind === 'settling') return 'settle';
  if (kind === 'sleeping') return 'sleep';
  if (kind === 'awaiting' || kind === 'stuck') return 'recheck';
  return kind === 'backoff' ? 'backoff' : 'approval_expiry';
}

/** A person let the session finish: raises its caps by exactly the worst case of the last call. */
function raiseForSummary(
  state: SessionState,
  reserve: { nanoUsd: number; tokens: number },
  moment: Moment,
): void {
  const { limits, spent, reserved } = state.budget;
  const tokens = spent.inputTokens + spent.outputTokens + reserved.tokens + reserve.tokens;
  if (limits.tokens !== undefined) limits.tokens = Math.max(limits.tokens, tokens);
  const dollars = usd(spent.nanoUsd + reserved.nanoUsd + reserve.nanoUsd);
  if (limits.usd !== undefined) limits.usd = Math.max(limits.usd, dollars);
  if (limits.toolCalls !== undefined) limits.toolCalls = Math.max(limits.toolCalls, spent.toolCalls);
  if (limits.turns !== undefined) limits.turns = Math.max(limits.turns, spent.turns + 1);
  if (limits.activeMs !== undefined) limits.activeMs = Math.max(limits.activeMs, spent.activeMs + 1);
  note(state, moment, 'budget', `the caps were raised for a closing summary: ${JSON.stringify(limits)}`);
}

function close(state: SessionState, result: Extract<Step, { type: 'close' }>['result'], at: string): void {
  if (result.status === 'completed') {
    state.status = { kind: 'completed', at, text: result.text };
    return;
  }
  const { by, reason } = state.cancelling ?? { by: UNNAMED, reason: '' };
  state.status = { kind: 'cancelled', at, by, reason };
}
