/** The command that asks the model. */

import type { JsonObject } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import type { CompactInput, ReadFirst } from '../contract/model-call.ts';
import { SEARCH_ATTRIBUTE } from '../contract/names.ts';
import type { SessionState } from '../contract/state.ts';
import type { Command } from './events.ts';
import { heartbeatMs } from './state.ts';

const MODEL_CALL_MS = 900_000;
const ATTRIBUTES = Object.keys(SEARCH_ATTRIBUTE).length;

/** The session's context, for the input of an activity. */
export function contextPart({ context }: SessionState): { context?: JsonObject } {
  return context === null ? {} : { context };
}

/** @param reading - the reads that run first in the same activity, and how many milliseconds they may take */
export function modelCommand(
  state: SessionState,
  reading?: { first: ReadFirst; readsMs: number; summary: string },
  compact?: CompactInput,
): Extract<Command, { kind: 'model' }> {
  return {
    kind: 'model',
    seq: state.seq + 1,
    input: {
      agent: state.agent,
      manifest: state.manifest?.digest ?? '',
      digest: shortDigest(state.position.digest),
      turn: state.turn + 1,
      ...contextPart(state),
      ...(reading === undefined ? {} : { first: reading.first }),
      ...(compact === undefined ? {} : { compact }),
      ...(state.finishing && compact === undefined ? { summarize: true as const } : {}),
      ...(state.fromModel > 0 ? { fromModel: state.fromModel } : {}),
      ...(state.searchAttributes.length < ATTRIBUTES ? { searchAttributes: state.searchAttributes } : {}),
    },
    heartbeatMs: heartbeatMs(state),
    timeoutMs: state.manifest?.modelCallMs ?? MODEL_CALL_MS,
    readsMs: reading?.readsMs ?? 0,
    summary:
      compact === undefined
        ? (reading?.summary ?? `turn ${state.turn + 1}`)
        : `compact before turn ${state.turn + 1}`,
  };
}

/** The command that asks a worker what the agent is. */
export function describeCommand(state: SessionState): Extract<Command, { kind: 'describe' }> {
  return { kind: 'describe', seq: state.seq + 1, input: { agent: state.agent, ...contextPart(state) } };
}
