/**
 * Keeps the prompt within the model's context window: decides when to summarize older messages, and applies the
 * summary.
 */

import { utf8Length } from '../contract/json.ts';
import { resultBytesOf } from '../contract/limits.ts';
import type { Block, Message } from '../contract/messages.ts';
import type { Compacted, CompactInput, ModelInput } from '../contract/model-call.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { BYTES_PER_TOKEN, isMain, promptBytes, SUMMARY_REQUEST, summaryTexts } from '../contract/view.ts';
import { promptTokens } from './budget.ts';
import type { Moment } from './events.ts';
import { paid } from './reply.ts';
import { appendMessage, freshMessageId, iso, note } from './state.ts';
import { stop } from './wait.ts';

/** Bytes of the message with the request for a summary. */
const REQUEST_BYTES = utf8Length(SUMMARY_REQUEST) + 100;

/** Bytes of the message that an activity adds to the prompt before it asks the model. */
export function addedBytes({ first, compact }: Pick<ModelInput, 'first' | 'compact'>): number {
  if (compact !== undefined) return REQUEST_BYTES;
  return first === undefined ? 0 : resultBytesOf(first);
}

/** How to compact the prompt before the model is asked, or `undefined` when it needs no compaction now. */
export function compaction(state: SessionState): CompactInput | undefined {
  const window = state.manifest?.contextWindow;
  if (window === undefined || state.compaction === 'tried') return undefined;
  const keep = window.keep * BYTES_PER_TOKEN;
  // If what stays were most of the prompt, each of the next replies would need a compaction.
  const isDue = roomInWindow(state) <= 0 && state.promptBytes >= 2 * keep;
  if (state.compaction !== 'wanted' && !isDue) return undefined;
  return {
    keep: Math.floor(Math.min(keep, state.promptBytes / 4)),
    ...(state.modelFailures > 0 ? { again: true as const } : {}),
  };
}

/** Bytes that the prompt may grow by before it is compacted. */
export function roomInWindow(state: SessionState): number {
  const { compactAt } = state.manifest?.contextWindow ?? {};
  if (compactAt === undefined || state.compaction === 'tried') return Number.POSITIVE_INFINITY;
  return (compactAt - promptTokens(state)) * BYTES_PER_TOKEN;
}

/** Handles a prompt that the model refused as too large: the session compacts it once. */
export function refusedPrompt(state: SessionState, flight: InFlight, message: string, moment: Moment): void {
  if (flight.compact === true || state.compaction === 'tried') {
    const advice = 'Edit that message or rewind to before it, or give the agent a model with a larger window';
    stop(state, moment, 'context_window', `${message}. ${advice}. Then resume`);
    return;
  }
  state.compaction = 'wanted';
  note(state, moment, 'context_window', message);
}

/** Appends the summary. From now on the model sees it in place of the messages that it replaces. */
export function applyCompacted(
  state: SessionState,
  flight: InFlight,
  result: Compacted,
  moment: Moment,
): void {
  paid(state, flight, result, moment);
  state.compaction = result.more === true ? 'wanted' : 'tried';
  const { before, replaced, kept, text } = result;
  const from = state.summarized ?? 0;
  const { plan } = state;
  const steps = plan.length === 0 ? '' : `\n\n[The plan now]\n${JSON.stringify(plan)}`;
  const message: Message = {
    id: freshMessageId(state),
    role: 'user',
    created_at: iso(moment),
    blocks: [
      ...summaryTexts(before, text + steps, result).map((words): Block => ({ kind: 'text', text: words })),
      ...(result.pinned ?? []),
    ],
    summary: { from, before, bytes: state.promptBytes },
  };
  const bytes = promptBytes(message);
  const what = `messages ${from} to ${before - 1} (${replaced} bytes)`;
  if (bytes >= replaced) {
    const problem = `the summary of ${what} has ${bytes} bytes: the prompt would not get smaller`;
    const advice =
      'Resume to let the model try again. Or raise contextWindow.compactAt or lower contextWindow.keep';
    stop(state, moment, 'context_window', `${problem}. ${advice} of ${state.agent}`);
    return;
  }
  note(state, moment, 'compacted', `${what} are summarized in ${bytes} bytes`);
  state.summarized = before;
  state.measured = null;
  state.promptBytes = kept;
  appendMessage(state, message);
}

/** Takes the last message out of the prompt, because an edit removes it. */
export function unsee(state: SessionState, message: Message): void {
  if (!isMain(message)) return;
  const { summary } = message;
  state.promptBytes = summary?.bytes ?? state.promptBytes - promptBytes(message);
  if (message.pinned === true) state.pinnedBytes = (state.pinnedBytes ?? 0) - promptBytes(message);
  if (summary === undefined) return;
  if (summary.from > 0) state.summarized = summary.from;
  else delete state.summarized;
}
