/** Messages that people pin: no summary replaces them. */
import type { SendInput } from '../contract/inputs.ts';
import type { SessionState } from '../contract/state.ts';
import { BYTES_PER_TOKEN, bytesOf } from '../contract/view.ts';
import type { Refusal } from './refusal.ts';
import { hasMessage, messageBlocks } from './state.ts';

/** Why a message cannot be pinned, or `null`. With more pinned bytes, every few turns would need a compaction. */
export function pinProblem(state: SessionState, { id, pin, ...message }: SendInput): Refusal | null {
  const { compactAt } = state.manifest?.contextWindow ?? {};
  if (pin !== true || compactAt === undefined || (id !== undefined && hasMessage(state, id))) return null;
  const limit = Math.floor((compactAt * BYTES_PER_TOKEN) / 2);
  const waiting = [...state.inbox.filter((queued) => queued.pin === true), message];
  const bytes = bytesOf(waiting.map((one) => ({ blocks: messageBlocks(one) }))) + (state.pinnedBytes ?? 0);
  if (bytes <= limit) return null;
  return {
    code: 'TOO_LARGE',
    message:
      `pin: the pinned messages would have ${bytes} bytes, at most ${limit} fit in the context window of ${state.agent}. ` +
      'Send the message without pin, pin a shorter one, or give the agent a model with a larger window',
    details: { field: 'pin', size: bytes, limit },
  };
}
