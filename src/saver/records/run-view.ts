/** A session's checkpoints as run-checkpoint records. */

import { sessionStateOf, wholeStateOf } from '../../checkpoints/session-state.ts';
import type { ToolCall } from '../../contract/calls.ts';
import { isFinal } from '../../contract/calls.ts';
import type { Checkpoint } from '../../contract/checkpoint.ts';
import { tenantOf } from '../../contract/context.ts';
import { digestJson, type JsonObject, type JsonValue, toJson } from '../../contract/json.ts';
import { argsDigest } from '../../contract/keys.ts';
import type { Message } from '../../contract/messages.ts';
import type { InFlight, SessionState } from '../../contract/state.ts';
import { isMain } from '../../contract/view.ts';
import { usd } from '../../session/budget.ts';
import { lastText, openBackground, phaseOf } from '../../session/state.ts';
import { childOf } from '../../session/sub-agents.ts';
import type {
  RunCheckpoint,
  RunPhase,
  RunState,
  RuntimeSnapshot,
  TerminalResult,
  ToolExecution,
} from './run-record.ts';

/**
 * The snapshot from which a run is resumed. `run_id` and `thread_id` are the session's id, `step` its turn,
 * `checkpoint_token` the checkpoint's id.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when the checkpoint is not a session's; `INVALID_ARGUMENT` when earlier
 * runs hold part of the messages: pass the result of `wholeCheckpoint`.
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { TemporalSaver, wholeCheckpoint } from 'perdure';
 * import { runCheckpoint } from 'perdure/records';
 *
 * const client = new Client();
 * const latest = await new TemporalSaver(client).get('ticket-7');
 * if (latest !== null) console.log(runCheckpoint(await wholeCheckpoint(client, latest)).payload);
 * ```
 */
export function runCheckpoint(checkpoint: Checkpoint): RunCheckpoint {
  const state = wholeStateOf(checkpoint);
  return recordOf(checkpoint, state, 'runtime_state', snapshotOf(checkpoint, state) as unknown as JsonObject);
}

/**
 * The phases that a run passed between two checkpoints, in order. One workflow task can pass several phases, or none.
 *
 * @param previous - the checkpoint's parent, or `null` for the first.
 */
export function runPhases(checkpoint: Checkpoint, previous: Checkpoint | null): RunCheckpoint[] {
  const state = sessionStateOf(checkpoint);
  const before = previous === null ? null : sessionStateOf(previous);
  const records: RunCheckpoint[] = [];
  const add = (phase: RunPhase, payload: JsonObject, step: number = state.turn): void => {
    records.push(recordOf(checkpoint, { ...state, turn: step }, phase, payload));
  };
  const addAsked = (step: number, message_count: number): void => {
    add('step_started', { state: runState(state), message_count }, step);
    add('pre_llm', { ...modelOf(state), message_count }, step);
  };
  if (before === null) add('run_started', { agent_name: state.agent, resumed: state.origin !== null });
  // Turns that a fork or rewind loaded did not happen in this run.
  const turn =
    before === null || (before.loading !== null && state.loading === null) ? state.turn : before.turn;
  if (before !== null && before.batch.length > 0 && !state.batch.includes(before.batch[0] ?? ''))
    add('post_tool_batch', batchEnd(state, before.turn));
  for (let at = turn + 1; at <= state.turn; at++) {
    const calls = callsOf(state, at);
    const reply = replyOf(state, at);
    // The activity that ran the reads also asked the model, with no checkpoint in between.
    if (at === turn + 1 && before?.inFlight.some(isReadingFirst) === true) {
      addAsked(turn, (state.past?.messages ?? 0) + state.transcript.findIndex(({ id }) => id === reply?.id));
    }
    add('post_llm', {
      ...answererOf(state, reply),
      finish_reason: state.finishReasons?.[reply?.id ?? ''] ?? (calls.length > 0 ? 'tool-calls' : 'stop'),
      tool_call_count: calls.length,
      session_token: null,
      checkpoint_token: checkpoint.id,
      total_cost_usd: usd(state.budget.spent.nanoUsd),
    });
    if (calls.length === 0) continue;
    add('pre_tool_batch', { tool_call_count: calls.length });
    if (!calls.some(({ id }) => state.batch.includes(id))) add('post_tool_batch', batchEnd(state, at));
  }
  // A compaction is not a step of the run.
  const asked = state.inFlight.find(
    (flight) => flight.kind === 'model' && flight.compact !== true && !isReadingFirst(flight),
  );
  if (asked !== undefined && !before?.inFlight.some(({ seq }) => seq === asked.seq)) {
    addAsked(state.turn, state.position.count);
  }
  const result = terminalOf(state);
  if (result !== null && before?.status.kind !== state.status.kind) {
    const { model, provider } = answererOf(state);
    add('run_terminal', {
      state: result.state,
      final_text: result.text,
      requested_model: requestedModel(state),
      normalized_model: model,
      provider_adapter: provider,
      terminal_result: { ...result },
    });
  }
  return records;
}

function isReadingFirst({ kind, reads }: InFlight): boolean {
  return kind === 'model' && reads !== undefined;
}

/** What an ended run returned, or `null` while it runs. */
export function terminalResult(checkpoint: Checkpoint): TerminalResult | null {
  return terminalOf(sessionStateOf(checkpoint));
}

function recordOf(
  { created_at }: Checkpoint,
  { sessionId, turn }: SessionState,
  phase: RunPhase,
  payload: JsonObject,
): RunCheckpoint {
  return {
    schema_version: 'v1',
    run_id: sessionId,
    step: turn,
    phase,
    timestamp_ms: Date.parse(created_at),
    payload,
  };
}

function snapshotOf(checkpoint: Checkpoint, state: SessionState): RuntimeSnapshot {
  const { spent } = state.budget;
  const asking = state.inFlight.some(({ kind }) => kind === 'model');
  const { model, provider } = asking ? modelOf(state) : answererOf(state);
  return structuredClone({
    messages: state.transcript,
    step: state.turn,
    state: runState(state),
    context: {
      agent: state.agent,
      tenant: tenantOf(state.context),
      session: state.context,
      mode: state.mode,
      scratchpad_root: state.scratchpadRoot,
      effect_namespace: state.namespace,
    },
    llm_calls: spent.turns,
    tool_calls: spent.toolCalls,
    started_at_s: Date.parse(state.createdAt) / 1_000,
    usage: {
      input_tokens: spent.inputTokens,
      output_tokens: spent.outputTokens,
      total_tokens: spent.inputTokens + spent.outputTokens,
    },
    total_cost_usd: usd(spent.nanoUsd),
    session_token: null,
    checkpoint_token: checkpoint.id,
    pending_llm_response: pendingResponse(state),
    tool_executions: state.calls.filter(isFinal).map(execution),
    subagent_executions: subAgentExecutions(state),
    requested_model: requestedModel(state),
    normalized_model: model,
    provider_adapter: provider,
    final_text: lastText(state),
    final_structured: structured(lastText(state)),
    final_response: terminalOf(state),
    replayed_effect_count: state.calls.filter(({ replayOf }) => replayOf !== null).length,
    background_tools_pending: [
      ...state.calls.filter((call) => !isFinal(call)).map(({ id }) => id),
      ...openBackground(state).map(({ callId }) => callId),
    ],
    thread_id: state.sessionId,
  });
}

/** The reply whose tool calls have not all ended. Whoever resumes continues with these calls. */
function pendingResponse(state: SessionState): RuntimeSnapshot['pending_llm_response'] {
  if (state.batch.length === 0) return null;
  const reply = replyOf(state);
  if (reply === undefined) return null;
  return {
    message_id: reply.id,
    text: lastText(state),
    tool_calls: callsOf(state, state.turn).map(({ id, name, args }) => ({ id, name, args })),
  };
}

/** The calls to sub-agents that have ended, each with the sub-agent's session. */
function subAgentExecutions(state: SessionState): JsonValue[] {
  return state.calls.filter(isFinal).flatMap((call) => {
    const child = childOf(state, call);
    if (child === undefined) return [];
    const { sessionId: session_id, agent, background } = child;
    const status = child.end?.status ?? (background === undefined ? 'failed' : 'running');
    return [{ ...execution(call), agent, session_id, status }];
  });
}

function execution({ id, name, args, result, replayOf }: ToolCall): ToolExecution {
  const output: JsonValue = result?.content ?? null;
  return {
    tool_call_id: id,
    tool_name: name,
    args,
    input_hash: argsDigest(name, args),
    output_hash: digestJson(output),
    output,
    success: result?.isError === false,
    replayed_from: replayOf,
  };
}

function runState(state: SessionState): RunState {
  const { kind } = state.status;
  if (kind !== 'active') return kind;
  const phase = phaseOf(state);
  switch (phase) {
    case 'starting':
      return 'pending';
    case 'paused':
    case 'cancelling':
      return phase;
    case 'waiting':
    case 'unknown_effect':
      return 'degraded';
    default:
      return 'running';
  }
}

function terminalOf({ status, turn, ...state }: SessionState): TerminalResult | null {
  switch (status.kind) {
    case 'active':
      return null;
    case 'completed':
      return { state: 'completed', text: status.text, turns: turn };
    case 'failed':
      return { state: 'failed', text: status.message, turns: turn };
    case 'cancelled':
      return { state: 'cancelled', text: lastText({ status, turn, ...state }), turns: turn };
    default:
      return status satisfies never;
  }
}

interface ModelName {
  [name: string]: string | null;
  model: string | null;
  provider: string | null;
}

function requestedModel({ manifest }: SessionState): string | null {
  return manifest?.models[0]?.id ?? null;
}

/** The model that is asked now. It is not the first of the list when the first has failed. */
function modelOf({ manifest, fromModel }: SessionState): ModelName {
  return named(manifest?.models[fromModel]?.id ?? null);
}

function replyOf({ transcript, turn }: SessionState, of: number = turn): Message | undefined {
  // Each later turn has added one reply.
  return transcript.filter((message) => message.role === 'assistant' && isMain(message)).at(of - turn - 1);
}

function answererOf(state: SessionState, reply: Message | undefined = replyOf(state)): ModelName {
  return named(state.answeredBy?.[reply?.id ?? ''] ?? requestedModel(state));
}

function structured(text: string): JsonValue {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    return toJson(JSON.parse(text));
  } catch {
    return null;
  }
}

function named(model: string | null): ModelName {
  return { model, provider: model?.split(':')[0] ?? null };
}

function callsOf(state: SessionState, turn: number): ToolCall[] {
  return state.calls.filter((call) => call.turn === turn);
}

function batchEnd(state: SessionState, turn: number): JsonObject {
  const calls = callsOf(state, turn);
  return {
    tool_calls_total: calls.length,
    tool_failures: calls.filter(({ result }) => result?.isError !== false).length,
  };
}
