/** Decides which reads run together and whether the same activity asks the model, and applies the outcomes. */

import { isFinal, type ToolCall } from '../contract/calls.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import { canonicalJson, defined, type JsonObject, jsonSize } from '../contract/json.ts';
import { readKey, shortDigest } from '../contract/keys.ts';
import { LIMIT, resultBytesOf } from '../contract/limits.ts';
import { type CallResult, resultBlocks } from '../contract/messages.ts';
import type {
  EndedCall,
  ModelResult,
  ReadCall,
  ReadEnd,
  ReadFirst,
  ReadsInput,
  ReadsResult,
} from '../contract/model-call.ts';
import { contentWithNotice, withNotice } from '../contract/replay.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { exceeded, worstCase } from './budget.ts';
import { roomInWindow } from './compaction.ts';
import { notRun, toldOf } from './effect-outcome.ts';
import type { Moment, Step } from './events.ts';
import { contextPart, modelCommand } from './model-command.ts';
import { isCovered } from './pool.ts';
import { askQuestion } from './question.ts';
import {
  appendMessage,
  batchCalls,
  DEFAULT_TIMEOUT_MS,
  endCall,
  freshMessageId,
  heartbeatMs,
  iso,
  theCall,
  toolOf,
} from './state.ts';
import { endUndo, isCompensation } from './undo.ts';

/** The same activity asks the model only if there is room for results of this many bytes. */
const LEAST_ROOM = 1_000;
/** The longest pause before a read's next attempt. */
const BACKOFF_MS = 30_000;

/**
 * Issues one activity for the reads whose turn it is. If nothing else is left of the reply, it also asks the model.
 *
 * @param mayAsk - whether the run's history has room for another model call
 */
export function issueReads(state: SessionState, reads: readonly ToolCall[], mayAsk: boolean): Step {
  const readsMs = Math.max(...reads.map((call) => readMs(state, call)));
  const names = reads.map(({ name, id }) => `${name} ${id}`).join(', ');
  const calls = reads.map((call) => readCall(state, call));
  const first = mayAsk ? readFirst(state, reads, calls) : null;
  if (first !== null) {
    const command = modelCommand(state, { first, readsMs, summary: `${names}; turn ${state.turn + 1}` });
    return { type: 'issue', command };
  }
  const input: ReadsInput = {
    agent: state.agent,
    manifest: state.manifest?.digest ?? '',
    digest: shortDigest(state.position.digest),
    reads: calls,
    ...settings(state),
  };
  return {
    type: 'issue',
    command: {
      kind: 'reads',
      seq: state.seq + 1,
      input,
      heartbeatMs: heartbeatMs(state),
      readsMs,
      maxAttempts: Math.max(...reads.map((call) => toolOf(state, call)?.maxAttempts ?? 1)),
      summary: names,
    },
  };
}

/** The settings of the session that activities pass to the functions of a tool. */
export function settings(state: SessionState): { scratchpadRoot?: string; context?: JsonObject } {
  const { scratchpadRoot } = state;
  return {
    ...(scratchpadRoot === null ? {} : { scratchpadRoot }),
    ...contextPart(state),
  };
}

/** How long all attempts of a read may take. */
function readMs(state: SessionState, call: ToolCall): number {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, maxAttempts = 1 } = toolOf(state, call) ?? {};
  return maxAttempts * timeoutMs + (maxAttempts - 1) * BACKOFF_MS;
}

function readCall({ sessionId, runId }: SessionState, call: ToolCall): ReadCall {
  const { id: callId, name: tool, args, idempotencyKey, decision, answers } = call;
  return {
    callId,
    ...(idempotencyKey === readKey({ sessionId, runId, tool, callId, args }) ? {} : { idempotencyKey }),
    ...(decision?.decision === 'edit' ? { args } : {}),
    ...defined({ answers }),
  };
}

/** The reads that the model call runs first, or `null` if they must run without a model call. */
function readFirst(state: SessionState, reads: readonly ToolCall[], calls: ReadCall[]): ReadFirst | null {
  // A read that was lost once runs without a model call: if it kills workers, that costs no model call.
  const fresh = reads.every(({ dispatches }) => dispatches.length === 0);
  const rest = batchCalls(state).filter((call) => !reads.includes(call));
  // The model must be told that a person edited the call, but the activity does not know that.
  const asAsked = reads.every(({ decision }) => decision?.decision !== 'edit');
  if (!fresh || !asAsked || !rest.every(isFinal) || !wantsReply(state)) return null;
  const ended = rest.map((call): EndedCall => ({ callId: call.id, ...asTold(call) }));
  const { limits } = state.budget;
  const isCapped = limits.tokens !== undefined || limits.usd !== undefined || state.pool !== undefined;
  const endedBytes = jsonSize(ended);
  if (endedBytes > LIMIT.readResults.capped) return null;
  const { scratchpadRoot } = state;
  const usual = LIMIT.readResults[isCapped ? 'capped' : 'free'];
  const room = Math.min(usual, roomInWindow(state) - endedBytes);
  // A compaction then comes first, and makes room for the results.
  if (room < LEAST_ROOM) return null;
  const first: ReadFirst = {
    reads: calls,
    ...(ended.length > 0 ? { ended } : {}),
    ...(isCapped || room < usual ? { resultBytes: endedBytes + room } : {}),
    ...(scratchpadRoot === null ? {} : { scratchpadRoot }),
  };
  const reserve = worstCase(state, resultBytesOf(first));
  const over = exceeded(state, { ...reserve, turns: 1, toolCalls: reads.length });
  return over === null && isCovered(state, reserve) ? first : null;
}

/** Whether the model may be asked as soon as the reads have ended. */
export function wantsReply(state: SessionState): boolean {
  return (
    state.status.kind === 'active' &&
    state.paused === null &&
    state.sealed === null &&
    state.cancelling === null &&
    state.wait === null &&
    state.inbox.every(({ aside }) => aside === true) &&
    !state.interrupted &&
    !state.resting &&
    !state.finishing
  );
}

/** Applies the outcomes of an activity's reads. */
export function applyReads(
  state: SessionState,
  flight: InFlight,
  outcome: ActivityOutcome<ReadsResult | ModelResult>,
  moment: Moment,
): void {
  const ends = new Map(outcome.ok ? outcome.value.reads?.map((end) => [end.callId, end] as const) : []);
  for (const callId of flight.reads ?? []) {
    const call = theCall(state, callId);
    const dispatch = call.dispatches.at(-1);
    if (dispatch === undefined || call.status.kind !== 'running') continue;
    const end = ends.get(callId);
    if (call.effect === 'mutate' && end?.result.kind !== 'output') {
      // The tool was declared a mutation while it ran.
      const reason = reasonOf(end) ?? 'it gave no result';
      Object.assign(dispatch, { outcome: 'unknown', reason });
      call.status = { kind: 'settling', reason };
      continue;
    }
    if (end !== undefined) {
      endRead(state, call, dispatch, end);
      continue;
    }
    call.status = { kind: 'ready' };
    if (outcome.ok && outcome.value.kind === 'manifest') {
      notRun(dispatch, outcome.value);
      continue;
    }
    // A lost read is harmless: it runs again, unless the activity has used up its attempts.
    dispatch.outcome = 'absent';
    dispatch.reason = outcome.ok ? 'the activity ended before it' : outcome.failure.message;
    if (outcome.ok || flight.cancelled === true || flight.kind === 'model') continue;
    dispatch.outcome = 'unknown';
    const content = `${call.name} gave no result: ${outcome.failure.message}`;
    endCall(call, { kind: 'failed', certain: false }, { content, isError: true }, iso(moment));
  }
}

function reasonOf(end: ReadEnd | undefined): string | undefined {
  return end !== undefined && 'message' in end.result ? end.result.message : undefined;
}

function endRead(
  state: SessionState,
  call: ToolCall,
  dispatch: ToolCall['dispatches'][number],
  { result, startedAt, ms, attempts }: ReadEnd,
): void {
  // A worker's clock may be behind the server's.
  const since = Math.max(startedAt, Date.parse(dispatch.at));
  const at = new Date(since + ms).toISOString();
  dispatch.startedAt = new Date(since).toISOString();
  if (attempts !== undefined) dispatch.attempts = attempts;
  switch (result.kind) {
    case 'output':
      dispatch.outcome = 'returned';
      endCall(call, { kind: 'completed' }, toldOf(result), at);
      return;
    case 'error':
      dispatch.outcome = 'returned';
      dispatch.reason = result.message;
      endCall(call, { kind: 'failed', certain: false }, { content: result.message, isError: true }, at);
      return;
    case 'asks':
      askQuestion(state, call, dispatch, result.question, at);
      return;
    case 'unavailable':
      dispatch.outcome = 'absent';
      dispatch.unbegun = true;
      dispatch.reason = result.message;
      call.status = { kind: 'stuck', reason: result.message, ...defined({ misfit: result.misfit }) };
      return;
    default:
      result satisfies never;
  }
}

/** Ends the batch: the results of its calls enter the transcript as one message. */
export function appendResults(state: SessionState, moment: Moment): void {
  if (batchCalls(state).some(isCompensation)) {
    endUndo(state);
    return;
  }
  const blocks = resultBlocks(batchCalls(state).map((call) => ({ ...call, result: asTold(call) })));
  appendMessage(state, { id: freshMessageId(state), role: 'tool', created_at: iso(moment), blocks });
  state.batch = [];
}

/** What the model is told about a call. The model's own message still shows the arguments that it asked for. */
export function asTold({ name, args, decision, result, status }: ToolCall): CallResult {
  if (result === null) return { content: null, isError: true };
  if (decision?.decision !== 'edit' || status.kind === 'skipped') return result;
  const notice = `[edited by a person] ${name} was called with other arguments than yours: ${canonicalJson(args)}. This is its result.`;
  const { content, modelOutput } = result;
  return {
    ...result,
    content: contentWithNotice(notice, content),
    ...(modelOutput === undefined ? {} : { modelOutput: withNotice(notice, modelOutput) }),
  };
}
