/**
 * Values near and over the limits: what tools and the model return in a session of mode `large`, and how it must be
 * handled.
 */
import type { Message, ToolCall } from 'perdure';
import { jsonSize } from '../src/contract/json.ts';
import { LIMIT } from '../src/contract/limits.ts';
import type { Mode, ToolKind } from './story.ts';

/**
 * Characters that each kind of tool adds to its result: just under the limit, over it, beyond any message of
 * Temporal's.
 */
const TAIL: Readonly<Record<ToolKind, number>> = {
  read: LIMIT.toolResult - 500,
  idempotent: LIMIT.toolResult + 1,
  mutate: 5_000_000,
  blind: LIMIT.toolResult - 500,
  global: 1_000_000,
};

/** Texts of the model: a text just under the limit beside its call, and a first answer over the limit. */
export const LARGE_REPLY: string = 'y'.repeat(LIMIT.modelReply - 1_000);
export const TOO_LARGE_REPLY: string = 'z'.repeat(LIMIT.modelReply + 1);

/** Characters of a result that a store of values takes. */
export const STORED_TAIL = 200_000;

/** A tool's result with a tail. The tail sorts last, so a shortened result keeps its receipt. */
export function enlarged(kind: ToolKind, mode: Mode, result: unknown): unknown {
  if (mode !== 'large' && mode !== 'stored') return result;
  return { ...(result as object), tail: 'x'.repeat(mode === 'large' ? TAIL[kind] : STORED_TAIL) };
}

/** What is wrong with the large values of a session. They must be whole, shortened with a notice, or refused. */
export function largeProblems(kind: ToolKind, transcript: readonly Message[], call: ToolCall): string[] {
  const problems: string[] = [];
  const texts = transcript
    .filter(({ role }) => role === 'assistant')
    .flatMap(({ blocks }) => blocks.map((block) => (block.kind === 'text' ? block.text : '')));
  const whole = texts.filter((text) => text === LARGE_REPLY).length;
  if (whole !== 1) problems.push(`the large reply is ${whole} times on record as it was said`);
  if (texts.some((text) => text.includes('zz'))) problems.push('a reply over the limit is on record');
  // The result is from a person, not from the tool.
  if (call.status.kind !== 'completed' || call.resolutions.length > 0) return problems;
  const text = JSON.stringify(call.result?.content ?? null);
  const [, had, kept] = /\[shortened: this result had (\d+) bytes, (\d+) are kept\]/.exec(text) ?? [];
  if (TAIL[kind] < LIMIT.toolResult) {
    if (had !== undefined || !text.includes('x'.repeat(TAIL[kind])))
      problems.push('a result that fits is not on record as it was');
  } else if (
    had === undefined ||
    Number(had) < TAIL[kind] ||
    Number(kept) > LIMIT.toolResult ||
    Number(kept) < 0.99 * LIMIT.toolResult
  ) {
    problems.push(`a result of more than ${TAIL[kind]} bytes is on record without the notice of it`);
  }
  const size = jsonSize(call.result?.content);
  if (size > LIMIT.toolResult) problems.push(`a result of ${size} bytes is on record`);
  return problems;
}
