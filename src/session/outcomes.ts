/** What the world's answers change: the effect protocol's three outcomes, replies, and their costs. */
import type {
  ActivityOutcome,
  LoadResult,
  ModelResult,
  PreparedCall,
  ToolResult,
} from '../contract/activities.ts';
import type { CallStatus, EffectOutcome, ToolCall } from '../contract/calls.ts';
import type { JsonValue } from '../contract/json.ts';
import type { Manifest, ToolManifest } from '../contract/manifest.ts';
import type { Block } from '../contract/messages.ts';
import { PLAN_TOOL } from '../contract/plan.ts';
import type { InFlight, SessionState, WaitReason } from '../contract/state.ts';
import { chargeLost, chargeReply } from './budget.ts';
import type { Moment, Outcome } from './events.ts';
import { plant, readLoaded } from './origin.ts';
import { readPlan } from './plan.ts';
import {
  appendMessage,
  endCall,
  freshCall,
  freshMessageId,
  isActive,
  iso,
  note,
  theCall,
  toolOf,
} from './state.ts';

/** Model calls that are repeated without a person after a lost or unreadable reply. */
const MODEL_REPEATS = 2;

/** Applies the outcome of a command. An outcome of a command that is not in flight any more changes nothing. */
export function applyOutcome(state: SessionState, seq: number, outcome: Outcome, moment: Moment): void {
  const index = state.inFlight.findIndex((flight) => flight.seq === seq);
  const flight = state.inFlight[index];
  if (flight === undefined) return;
  state.inFlight.splice(index, 1);
  if (flight.reserved !== undefined) {
    state.budget.reserved.nanoUsd -= flight.reserved.nanoUsd;
    state.budget.reserved.tokens -= flight.reserved.tokens;
  }
  if (state.activeSince !== null && !isActive(state)) {
    state.budget.spent.activeMs += Math.max(0, moment.now - Date.parse(state.activeSince));
    state.activeSince = null;
  }
  switch (outcome.kind) {
    case 'load':
      applyLoad(state, outcome.result, moment);
      return;
    case 'describe':
      if (!outcome.result.ok) stop(state, moment, 'agent_unavailable', outcome.result.failure.message);
      else if (outcome.result.value.kind === 'manifest') {
        state.searchAttributes = outcome.result.value.searchAttributes;
        setManifest(state, outcome.result.value.manifest, moment);
      } else stop(state, moment, 'agent_unavailable', outcome.result.value.message);
      return;
    case 'model':
      applyModel(state, flight, outcome.result, moment);
      return;
    case 'tool':
      applyTool(state, theCall(state, flight.callId ?? ''), flight, outcome.result, moment);
      return;
    case 'verify': {
      const call = theCall(state, flight.callId ?? '');
      const found: EffectOutcome = outcome.result.ok
        ? outcome.result.value
        : { outcome: 'unknown', reason: `verify ended without a result: ${outcome.result.failure.message}` };
      applyVerify(state, call, found, moment);
      return;
    }
    case 'prepare':
      applyPrepare(state, theCall(state, flight.callId ?? ''), outcome.result, moment);
      return;
    case 'timer':
      applyTimer(state, flight, moment);
      return;
    default:
      outcome satisfies never;
  }
}

function applyLoad(state: SessionState, outcome: ActivityOutcome<LoadResult>, moment: Moment): void {
  const { loading, origin } = state;
  if (loading === null || origin === null) return;
  if (!outcome.ok) {
    if (outcome.failure.kind !== 'cancelled')
      stop(state, moment, 'history_unreadable', outcome.failure.message);
    return;
  }
  const result = outcome.value;
  if (result.kind === 'unavailable') {
    stop(state, moment, 'history_unreadable', result.message);
    return;
  }
  loading.parts.push(result.text);
  if (loading.parts.length < result.parts) return;
  const loaded = readLoaded(loading.parts.join(''));
  if (loaded === null) {
    loading.parts = [];
    stop(
      state,
      moment,
      'history_unreadable',
      'the checkpoint is of a version that this worker does not know',
    );
  } else plant(state, origin, loaded, moment);
}

/** Stops the session visibly until somebody does what `next` says. */
export function stop(
  state: SessionState,
  moment: Moment,
  reason: WaitReason,
  message: string,
  next?: string,
): void {
  state.wait = {
    reason,
    message: message.slice(0, 4_000),
    since: iso(moment),
    next: next ?? `perdure resume ${state.sessionId}`,
  };
}

function setManifest(state: SessionState, manifest: Manifest, moment: Moment): void {
  const before = state.manifest;
  state.manifest = manifest;
  // Another prompt is another number of tokens.
  state.measured = null;
  if (before === null) {
    state.budget.limits = { ...manifest.budget, ...state.budget.limits };
    return;
  }
  note(
    state,
    moment,
    'manifest',
    `the definition of ${manifest.agent} changed: ${before.digest} to ${manifest.digest}`,
  );
}

function applyModel(
  state: SessionState,
  flight: InFlight,
  outcome: ActivityOutcome<ModelResult>,
  moment: Moment,
): void {
  const reserved = flight.reserved ?? { nanoUsd: 0, tokens: 0 };
  if (!outcome.ok) {
    // A cancelled activity that had started returns a result; without one it never started, and cost nothing.
    if (outcome.failure.kind === 'cancelled') return;
    chargeLost(state, 1, reserved);
    repeatOrStop(state, moment, 'provider_unavailable', outcome.failure.message, flight);
    return;
  }
  const result = outcome.value;
  switch (result.kind) {
    case 'manifest':
      setManifest(state, result.manifest, moment);
      return;
    case 'unavailable':
      stop(state, moment, 'agent_unavailable', result.message);
      return;
    case 'failed': {
      chargeLost(state, result.maybeBilled, reserved);
      const { failure, message, model } = result;
      if (
        model !== undefined &&
        model + 1 < (state.manifest?.models.length ?? 0) &&
        flight.cancelled !== true
      ) {
        state.fromModel = model + 1;
        note(state, moment, 'fallback', `${state.manifest?.models[model]?.id ?? model}: ${message}`);
      } else if (failure === 'interrupted')
        repeatOrStop(state, moment, 'provider_unavailable', message, flight);
      else if (failure === 'invalid_response')
        repeatOrStop(state, moment, 'invalid_response', message, flight);
      else if (failure === 'history') stop(state, moment, 'history_unreadable', message);
      else stop(state, moment, failure, message);
      return;
    }
    case 'reply':
      applyReply(state, flight, result, moment);
      return;
    default:
      result satisfies never;
  }
}

function repeatOrStop(
  state: SessionState,
  moment: Moment,
  reason: WaitReason,
  message: string,
  flight: InFlight,
): void {
  if (flight.cancelled === true) return;
  state.modelFailures += 1;
  note(state, moment, reason, message);
  if (state.modelFailures > MODEL_REPEATS) stop(state, moment, reason, message);
}

function applyReply(
  state: SessionState,
  flight: InFlight,
  reply: Extract<ModelResult, { kind: 'reply' }>,
  moment: Moment,
): void {
  const manifest = state.manifest;
  if (manifest === null) return;
  const at = iso(moment);
  state.modelFailures = 0;
  state.fromModel = 0;
  state.turn += 1;
  state.budget.spent.turns += 1;
  chargeReply(state, manifest.models[reply.model], reply.usage, flight.reserved ?? { nanoUsd: 0, tokens: 0 });
  for (const fallback of reply.fallbacks ?? []) {
    note(
      state,
      moment,
      'fallback',
      `${manifest.models[fallback.model]?.id ?? fallback.model}: ${fallback.message}`,
    );
  }
  const calls = reply.calls.map((prepared, i) =>
    newCall(state, manifest, prepared, `call_${state.turn}_${i}`, at),
  );
  const blocks: Block[] = [
    ...reply.blocks,
    ...calls.map((call, i): Block => {
      const metadata = reply.calls[i]?.metadata;
      const block = { kind: 'tool_call' as const, id: call.id, name: call.name, args: call.args };
      return metadata === undefined ? block : { ...block, metadata };
    }),
  ];
  appendMessage(state, { id: freshMessageId(state), role: 'assistant', created_at: at, blocks });
  const { inputTokens, outputTokens } = reply.usage;
  // A tokenizer's count says nothing about another model's, and any of several may answer next.
  state.measured =
    manifest.models.length === 1 && inputTokens !== null && outputTokens !== null
      ? { bytes: state.promptBytes, tokens: inputTokens + outputTokens }
      : null;
  state.calls.push(...calls);
  state.batch = calls.map(({ id }) => id);
  if (calls.length > 0) watchLoop(state, manifest, calls, moment);
}

function newCall(
  state: SessionState,
  manifest: Manifest,
  prepared: PreparedCall,
  id: string,
  at: string,
): ToolCall {
  const tool = manifest.tools[prepared.name];
  const call: ToolCall = {
    ...freshCall(id, state.turn, prepared.name, prepared.args),
    effect: tool?.effect ?? 'read',
    scope: tool?.scope ?? 'call',
    idempotencyKey: prepared.idempotencyKey ?? '',
  };
  if (prepared.problem !== undefined) {
    endCall(call, { kind: 'skipped' }, { content: prepared.problem, isError: true }, at);
  } else if (prepared.name === PLAN_TOOL && tool === undefined) {
    const read = readPlan(prepared.args, state.calls);
    call.issuedAt = at;
    if (read.ok) state.plan = read.plan;
    endCall(
      call,
      read.ok ? { kind: 'completed' } : { kind: 'failed', certain: true },
      { content: read.ok ? 'The plan is updated.' : read.problem, isError: !read.ok },
      at,
    );
  } else if (prepared.needsApproval === true && !isCarried(state, prepared)) {
    call.status = awaitApproval(tool, at);
  }
  return call;
}

function awaitApproval(tool: ToolManifest | undefined, at: string): CallStatus {
  const expiresMs = tool?.approval.expiresMs ?? null;
  const expiresAt = expiresMs === null ? null : new Date(Date.parse(at) + expiresMs).toISOString();
  return { kind: 'approval', expiresAt };
}

/** Whether a call is answered by what happened before a rewind: then there is nothing to approve. */
function isCarried(state: SessionState, { idempotencyKey }: PreparedCall): boolean {
  return state.carried.some((effect) => effect.idempotencyKey === idempotencyKey);
}

function watchLoop(
  state: SessionState,
  manifest: Manifest,
  calls: readonly ToolCall[],
  moment: Moment,
): void {
  const digest = calls
    .map((call) => call.argsDigest)
    .sort()
    .join();
  state.loop = { digest, count: state.loop.digest === digest ? state.loop.count + 1 : 1 };
  if (state.loop.count < manifest.loopLimit) return;
  const names = [...new Set(calls.map(({ name }) => name))].join(', ');
  stop(
    state,
    moment,
    'loop',
    `the model asked for the same calls (${names}) ${state.loop.count} times in a row`,
  );
}

function applyTool(
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
    if (call.scope === 'global') {
      // What was lost is only our waiting: the effect has a session of its own, which nobody here can end.
      record('absent', reason);
      call.status = flight.cancelled === true ? { kind: 'ready' } : { kind: 'stuck', reason };
    } else if (call.effect === 'mutate') {
      record('unknown', reason);
      call.status = { kind: 'settling', reason };
    } else if (flight.cancelled === true) {
      // Safe to repeat: after a pause it runs again, otherwise the turn is over.
      record('absent', reason);
      call.status = { kind: 'ready' };
    } else {
      record('unknown', reason);
      fail(call, `${call.name} gave no result: ${reason}`, false, iso(moment));
    }
    return;
  }
  const result = outcome.value;
  const at = ('local' in result ? result.local?.completedAt : undefined) ?? iso(moment);
  switch (result.kind) {
    case 'output':
      record('returned');
      endCall(call, { kind: 'completed' }, { content: result.output, isError: false }, at);
      return;
    case 'error':
      record('returned', result.message);
      fail(call, result.message, false, at);
      return;
    case 'absent':
      record('absent', result.reason);
      if (result.retryable && call.dispatches.length < (toolOf(state, call)?.maxAttempts ?? 1)) {
        call.status = { kind: 'backoff' };
      } else {
        fail(call, `${call.name} was not executed: ${result.reason}`, true, at);
      }
      return;
    case 'unknown':
      record('unknown', result.reason);
      call.status = { kind: 'settling', reason: result.reason };
      return;
    case 'unavailable':
      record('absent', result.message);
      call.status = { kind: 'stuck', reason: result.message };
      return;
    case 'exceeded':
      record('absent', 'exceeded the cap of a local call');
      call.status = { kind: 'ready' };
      return;
    default:
      result satisfies never;
  }
}

function fail(call: ToolCall, content: JsonValue, certain: boolean, at: string): void {
  endCall(call, { kind: 'failed', certain }, { content, isError: true }, at);
}

function applyVerify(state: SessionState, call: ToolCall, found: EffectOutcome, moment: Moment): void {
  if (call.status.kind !== 'verifying') return;
  const dispatch = call.dispatches.at(-1);
  if (dispatch !== undefined) {
    dispatch.outcome = found.outcome;
    if (found.outcome !== 'landed') dispatch.reason = `${dispatch.reason ?? ''}; verify: ${found.reason}`;
  }
  switch (found.outcome) {
    case 'landed':
      endCall(call, { kind: 'completed' }, { content: found.output, isError: false }, iso(moment));
      return;
    case 'absent':
      if (call.dispatches.length < (toolOf(state, call)?.maxAttempts ?? 1)) call.status = { kind: 'ready' };
      else
        fail(call, `${call.name} was not executed: ${dispatch?.reason ?? found.reason}`, true, iso(moment));
      return;
    case 'unknown':
      call.status = { kind: 'unknown', reason: found.reason };
      return;
    default:
      found satisfies never;
  }
}

function applyPrepare(
  state: SessionState,
  call: ToolCall,
  outcome: ActivityOutcome<PreparedCall>,
  moment: Moment,
): void {
  if (call.status.kind !== 'preparing') return;
  const problem = outcome.ok ? outcome.value.problem : outcome.failure.message;
  if (problem === undefined && outcome.ok) {
    const { idempotencyKey = call.idempotencyKey, needsApproval } = outcome.value;
    call.idempotencyKey = idempotencyKey;
    call.status =
      needsApproval === true && call.decision === null
        ? awaitApproval(toolOf(state, call), iso(moment))
        : { kind: 'ready' };
    return;
  }
  call.decision = null;
  call.status = { kind: 'approval', expiresAt: null, problem: problem ?? 'invalid' };
}

function applyTimer(state: SessionState, flight: InFlight, moment: Moment): void {
  if (flight.kind === 'ttl') {
    state.finishing = true;
    return;
  }
  const call = theCall(state, flight.callId ?? '');
  if (flight.kind === 'settle' || flight.kind === 'backoff') {
    releaseCall(state, call);
  } else if (flight.kind === 'approval_expiry' && call.status.kind === 'approval') {
    const at = iso(moment);
    const onExpiry = toolOf(state, call)?.approval.onExpiry ?? 'reject';
    call.decision = { decision: 'expired', by: 'policy', at, reason: `nobody decided in time: ${onExpiry}` };
    if (onExpiry === 'approve') call.status = { kind: 'ready' };
    else {
      const content = `Nobody approved this call of ${call.name} in time; it was not executed.`;
      endCall(call, { kind: 'skipped' }, { content, isError: true }, at);
    }
  }
}

/** Ends a call's waiting: what was lost has settled and is verified, what was held back is ready. */
export function releaseCall(state: SessionState, call: ToolCall): void {
  if (call.status.kind === 'settling') {
    const { reason } = call.status;
    const verifiable = toolOf(state, call)?.verify === true;
    call.status = verifiable ? { kind: 'verifying', reason } : { kind: 'unknown', reason };
  } else if (call.status.kind === 'backoff' || call.status.kind === 'deferred') {
    call.status = { kind: 'ready' };
  }
}
