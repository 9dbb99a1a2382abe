/** Side answers: while calls are open, the model answers a message at once, and nothing that is pending changes. */
import type { CallStatus, ToolCall } from '../contract/calls.ts';
import { isFinal } from '../contract/calls.ts';
import type { ActivityOutcome } from '../contract/failure.ts';
import { defined, jsonSize } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import type { CallResult } from '../contract/messages.ts';
import type { AsideQuestion, EndedCall, ModelResult } from '../contract/model-call.ts';
import type { InFlight, QueuedMessage, SessionState } from '../contract/state.ts';
import { bytesOf, isMain, promptBytes } from '../contract/view.ts';
import { chargeLost, chargeReply, exceeded, worstCase } from './budget.ts';
import type { Moment, Step } from './events.ts';
import { setManifest } from './manifest.ts';
import { modelCommand } from './model-command.ts';
import { isCovered } from './pool.ts';
import { asTold } from './reads.ts';
import { answered } from './reply.ts';
import { appendMessage, batchCalls, freshMessageId, iso, messageBlocks, note } from './state.ts';

/** After this many lost side answers, the message waits for the end of the turn. */
const LOSSES = 3;
/** More bytes than a message or a result adds to a prompt beside its text. */
const PART_BYTES = 100;

/** Whether a message gets a side answer if it comes now. Otherwise it is an ordinary message. */
export function mayAnswerAside({ batch, wait, cancelling }: SessionState): boolean {
  return batch.length > 0 && wait === null && cancelling === null;
}

/** Asks the model about the first message that wants a side answer; otherwise `null`. */
export function asideStep(state: SessionState): Step | null {
  const message = state.inbox.find(({ aside }) => aside === true);
  if (message === undefined || state.batch.length === 0 || state.finishing) return null;
  if (isAnswering(state)) return null;
  const aside = asideOf(state, message);
  const reserve = worstCase(state, asideBytes(state, aside));
  const over = exceeded(state, { ...reserve, turns: 0, toolCalls: 0 });
  if (over !== null) return { type: 'queue_aside', messageId: message.id, reason: over.message };
  if (!isCovered(state, reserve)) {
    const reason = `the session holds too little of pool ${state.pool?.id}`;
    return { type: 'queue_aside', messageId: message.id, reason };
  }
  const { seq, input, heartbeatMs, timeoutMs } = modelCommand(state);
  const { searchAttributes: _none, ...rest } = input;
  return {
    type: 'issue',
    command: {
      kind: 'aside',
      seq,
      messageId: message.id,
      input: { ...rest, turn: state.turn, aside },
      heartbeatMs,
      timeoutMs,
      summary: `side answer to ${message.id}`,
    },
  };
}

/** Bytes that a side question adds to the prompt, together with the side answers before it. */
export function asideBytes({ transcript }: SessionState, { blocks, results }: AsideQuestion): number {
  const since = transcript.slice(transcript.findLastIndex(isMain) + 1);
  const parts = results.length + since.length + 1;
  return promptBytes({ blocks }) + jsonSize(results) + bytesOf(since) + PART_BYTES * parts;
}

function asideOf(state: SessionState, message: QueuedMessage): AsideQuestion {
  const calls = batchCalls(state);
  const ended = calls.filter(isFinal);
  const isLarge = jsonSize(ended.map(({ result }) => result)) > LIMIT.readResults.capped;
  const results = calls.map((call): EndedCall => ({ callId: call.id, ...toldOf(call, isLarge) }));
  return { blocks: messageBlocks(message), results };
}

function toldOf(call: ToolCall, isLarge: boolean): CallResult {
  if (!isFinal(call)) {
    const open = OPEN[call.status.kind] ?? 'It has not ended yet.';
    return { content: `${open} ${MEANWHILE}`, isError: false };
  }
  return isLarge ? { content: `It is ${call.status.kind}.`, isError: false } : asTold(call);
}

const MEANWHILE =
  'The user says something meanwhile. Answer that in words, without calling tools. The call goes on afterwards.';
const OPEN: { [kind in CallStatus['kind']]?: string } = {
  approval: 'It has not run yet: it waits for the approval of a person.',
  ready: 'It has not run yet.',
  running: 'It is still running.',
  awaiting: 'It is still running.',
  unknown: 'Nobody knows yet whether it happened: it waits for a person to find out.',
};

/** Whether a side answer is being written. */
export function isAnswering({ inFlight }: SessionState): boolean {
  return inFlight.some(({ kind }) => kind === 'aside');
}

/** Whether the model is writing the side answer to a message. */
export function isBeingAnswered({ inFlight }: SessionState, messageId: string): boolean {
  return inFlight.some((flight) => flight.kind === 'aside' && flight.messageId === messageId);
}

/** Whether messages are queued that the next turn may take. */
export function hasQueued(state: SessionState): boolean {
  return state.inbox.some(({ id }) => !isBeingAnswered(state, id));
}

/** Takes the messages for the next turn out of the queue. */
export function takeQueued(state: SessionState): QueuedMessage[] {
  const taken = state.inbox.filter(({ id }) => !isBeingAnswered(state, id));
  state.inbox = state.inbox.filter((message) => !taken.includes(message));
  return taken;
}

/** Lets a message wait for the end of the turn, because it gets no side answer. */
export function queueAside(
  state: SessionState,
  { messageId, reason }: { messageId: string; reason: string },
  moment: Moment,
): void {
  change(state, messageId, ({ aside: _aside, lost: _lost, ...message }) => message);
  const why = `message ${messageId} gets no side answer and waits for the end of the turn: ${reason}`;
  note(state, moment, 'aside', why);
}

function change(state: SessionState, messageId: string, to: (message: QueuedMessage) => QueuedMessage): void {
  state.inbox = state.inbox.map((message) => (message.id === messageId ? to(message) : message));
}

/** Records a side answer. Without an answer, the model is asked again, or the message waits for the end of the turn. */
export function applyAside(
  state: SessionState,
  flight: InFlight,
  outcome: ActivityOutcome<ModelResult>,
  moment: Moment,
): void {
  const { messageId = '', reserved = { nanoUsd: 0, tokens: 0 } } = flight;
  const { spent } = state.budget;
  if (!outcome.ok) {
    // The activity never started, and cost nothing.
    if (outcome.failure.kind === 'cancelled') return;
    chargeLost(spent, 1, reserved);
    lost(state, messageId, outcome.failure.message, moment);
    return;
  }
  const result = outcome.value;
  if (result.kind === 'manifest') {
    setManifest(state, result.manifest, moment);
    return;
  }
  if (result.kind === 'reply') {
    record(state, messageId, result, reserved, moment);
    return;
  }
  const reason = 'message' in result ? result.message : `the model gave ${result.kind}`;
  if (result.kind === 'failed') {
    chargeLost(spent, result.maybeBilled, reserved);
    if (flight.cancelled === true || result.released === true) return;
    if (result.failure === 'worker_lost' || result.failure === 'interrupted') {
      lost(state, messageId, reason, moment);
      return;
    }
  }
  queueAside(state, { messageId, reason }, moment);
}

/** A lost answer is asked for again, unless that happens too often. */
function lost(state: SessionState, messageId: string, reason: string, moment: Moment): void {
  const message = state.inbox.find(({ id }) => id === messageId);
  const times = (message?.lost ?? 0) + 1;
  if (times < LOSSES) change(state, messageId, (queued) => ({ ...queued, lost: times }));
  else queueAside(state, { messageId, reason: `${reason}, ${times} times` }, moment);
}

function record(
  state: SessionState,
  messageId: string,
  reply: Extract<ModelResult, { kind: 'reply' }>,
  reserved: { nanoUsd: number; tokens: number },
  moment: Moment,
): void {
  const models = state.manifest?.models ?? [];
  chargeReply(state, models[reply.model ?? 0], reply.usage, reserved);
  const message = state.inbox.find(({ id }) => id === messageId);
  if (message === undefined) return;
  state.inbox = state.inbox.filter((queued) => queued !== message);
  const by = message.verified === true ? message.by : undefined;
  appendMessage(state, {
    id: messageId,
    role: 'user',
    created_at: message.at,
    blocks: messageBlocks(message),
    ...defined({ by }),
    aside: true,
  });
  const id = freshMessageId(state);
  answered(state, id, models[reply.model ?? 0]?.id ?? '', reply);
  appendMessage(state, { id, role: 'assistant', created_at: iso(moment), blocks: reply.blocks, aside: true });
}
