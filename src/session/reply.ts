/** A model's reply: its message, its calls, its cost. */

import type { ToolCall } from '../contract/calls.ts';
import type { Manifest } from '../contract/manifest.ts';
import type { Block } from '../contract/messages.ts';
import type { Compacted, ModelResult, PreparedCall } from '../contract/model-call.ts';
import { repairRequest } from '../contract/output.ts';
import { PLAN_TOOL } from '../contract/plan.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { chargeReply } from './budget.ts';
import { answerBuiltIn } from './built-in.ts';
import { setKey } from './effect-key.ts';
import { awaitApproval } from './effect-outcome.ts';
import type { Moment } from './events.ts';
import { readPlan } from './plan.ts';
import { appendMessage, endCall, freshCall, freshMessageId, iso, note } from './state.ts';
import { stop } from './wait.ts';

/** How often the model is asked again for an answer that fits the agent's `output` schema. */
const REPAIRS = 2;

export function applyReply(
  state: SessionState,
  flight: InFlight,
  reply: Extract<ModelResult, { kind: 'reply' }>,
  moment: Moment,
): void {
  const manifest = state.manifest;
  if (manifest === null) return;
  const at = iso(moment);
  delete state.compaction;
  state.turn += 1;
  state.budget.spent.turns += 1;
  paid(state, flight, reply, moment);
  if (reply.finishReason === 'length') {
    const message = `the reply of turn ${state.turn} was cut at maxOutputTokens: raise it in ${state.agent}`;
    note(state, moment, 'truncated', message);
  }
  const calls = reply.calls.map((prepared, i) =>
    newCall(state, manifest, prepared, `call_${state.turn}_${i}`, moment),
  );
  const blocks: Block[] = [
    ...reply.blocks,
    ...calls.map((call, i): Block => {
      const metadata = reply.calls[i]?.metadata;
      const block = { kind: 'tool_call' as const, id: call.id, name: call.name, args: call.args };
      return metadata === undefined ? block : { ...block, metadata };
    }),
  ];
  const id = freshMessageId(state);
  answered(state, id, manifest.models[reply.model ?? 0]?.id ?? '', reply);
  const message = { id, role: 'assistant', created_at: at, blocks } as const;
  appendMessage(state, { ...message, ...(reply.output?.ok === true ? { output: reply.output.value } : {}) });
  const { inputTokens, outputTokens } = reply.usage;
  // Models count tokens differently, and with several models any of them may answer next.
  state.measured =
    manifest.models.length === 1 && inputTokens !== null && outputTokens !== null
      ? { bytes: state.promptBytes, tokens: inputTokens + outputTokens }
      : null;
  state.calls.push(...calls);
  state.batch = calls.map(({ id }) => id);
  if (calls.length > 0) watchLoop(state, manifest, calls, moment);
  if (reply.output?.ok === true) delete state.misfits;
  if (reply.output?.ok === false) repair(state, reply.output.problem, moment);
}

/** Asks the model for an answer that fits the schema. After some misfits the session waits; `resume` asks again. */
function repair(state: SessionState, problem: string, moment: Moment): void {
  state.misfits = (state.misfits ?? 0) + 1;
  const text = repairRequest(problem);
  const message = { id: freshMessageId(state), role: 'user', created_at: iso(moment) } as const;
  appendMessage(state, { ...message, blocks: [{ kind: 'text', text }], repair: true });
  note(
    state,
    moment,
    'output',
    `the answer of turn ${state.turn} does not fit the output schema: ${problem}`,
  );
  if (state.misfits <= REPAIRS) return;
  const why = `${state.misfits} answers in a row do not fit the output schema of ${state.agent}: ${problem}`;
  stop(state, moment, 'invalid_response', why);
}

/** Charges an answer of a model, and notes which models failed before it. */
export function paid(
  state: SessionState,
  { reserved = { nanoUsd: 0, tokens: 0 } }: InFlight,
  { model = 0, usage, fallbacks = [] }: Pick<Compacted, 'model' | 'usage' | 'fallbacks'>,
  moment: Moment,
): void {
  const models = state.manifest?.models ?? [];
  state.modelFailures = 0;
  state.workersLost = 0;
  state.fromModel = 0;
  chargeReply(state, models[model], usage, reserved);
  for (const { model: failed, message } of fallbacks)
    note(state, moment, 'fallback', `${models[failed]?.id ?? failed}: ${message}`);
}

/** Notes what is unusual about an answer: its model, its instructions, its finish reason. */
export function answered(
  state: SessionState,
  messageId: string,
  model: string,
  { finishReason, instructions }: Extract<ModelResult, { kind: 'reply' }>,
): void {
  // An edit may have removed an earlier message with the same id.
  if (state.answeredBy !== undefined) delete state.answeredBy[messageId];
  if (state.instructedBy !== undefined) delete state.instructedBy[messageId];
  if (state.finishReasons !== undefined) delete state.finishReasons[messageId];
  if (model !== state.manifest?.models[0]?.id) state.answeredBy = { ...state.answeredBy, [messageId]: model };
  if (instructions !== undefined) state.instructedBy = { ...state.instructedBy, [messageId]: instructions };
  if (finishReason !== undefined) state.finishReasons = { ...state.finishReasons, [messageId]: finishReason };
}

function newCall(
  state: SessionState,
  manifest: Manifest,
  prepared: PreparedCall,
  id: string,
  moment: Moment,
): ToolCall {
  const at = iso(moment);
  const tool = manifest.tools[prepared.name];
  const call: ToolCall = {
    ...freshCall(id, state, prepared.name, prepared.args),
    effect: tool?.effect ?? 'read',
    scope: tool?.scope ?? 'call',
  };
  if (tool !== undefined && prepared.problem === undefined) setKey(state, call, prepared.identity);
  if (prepared.problem !== undefined) {
    endCall(call, { kind: 'skipped' }, { content: prepared.problem, isError: true }, at);
  } else if (prepared.name === PLAN_TOOL && tool === undefined) {
    const read = readPlan(prepared.args, state.calls, state.past?.completed);
    call.issuedAt = at;
    if (read.ok) state.plan = read.plan;
    endCall(
      call,
      read.ok ? { kind: 'completed' } : { kind: 'failed', certain: true },
      { content: read.ok ? 'The plan is updated.' : read.problem, isError: !read.ok },
      at,
    );
  } else if (tool?.builtIn !== undefined) {
    answerBuiltIn(state, call, tool.builtIn, moment);
  } else if (prepared.needsApproval === true && !isCarried(state, call)) {
    awaitApproval(call, tool, at);
  }
  return call;
}

/** Whether an effect that happened before a rewind answers the call: then there is nothing to approve. */
function isCarried(state: SessionState, call: ToolCall): boolean {
  return state.carried.some(
    ({ idempotencyKey: key, doubt }) => key === call.idempotencyKey && doubt === undefined,
  );
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
