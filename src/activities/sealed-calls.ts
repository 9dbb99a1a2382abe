/** Looks for the record of an equal call among those that have left a session's run. */
import type { Client } from '@temporalio/client';
import { LRUCache } from 'lru-cache';
import type { ToolInput, ToolResult } from '../contract/activities.ts';
import { isAnswered, type ToolCall } from '../contract/calls.ts';
import type { PieceRef } from '../contract/piece.ts';
import type { ContentRef } from '../contract/thread.ts';
import { loadPiece } from '../temporal/past.ts';
import { leftAnswer } from './earlier-runs.ts';

/** The effects of a piece by their keys, and the pieces before it. */
interface Index {
  before: readonly PieceRef[];
  calls: ReadonlyMap<string, ToolCall>;
  /** Mutations of runs that a reset has left. */
  left: readonly ToolCall[];
}

/** A piece never changes. */
const indexes = new LRUCache<string, Index>({ max: 500 });

/**
 * What the record before this run says of a call that is about to run: `null` when no equal call is on it.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` or Temporal's `ServiceError` when the record cannot be read: the call must
 * not run then.
 */
export async function sealedAnswer(client: Client, input: ToolInput): Promise<ToolResult | null> {
  if (input.past === undefined) return null;
  const newest = await indexOf(client, input.past);
  for (let index = newest, at = newest.before.length - 1; ; at--) {
    const call = index.calls.get(input.idempotencyKey);
    const answer = call?.name === input.tool ? replayOf(call) : leftAnswer(index.left, input);
    if (answer !== null) return answer;
    const ref = newest.before[at];
    if (ref === undefined) return null;
    index = await indexOf(client, ref);
  }
}

/** What the record of a call that has ended says. */
function replayOf({ id, status, result }: ToolCall): ToolResult | null {
  if (status.kind !== 'completed' && status.kind !== 'failed') return null;
  return { kind: 'replay', of: id, status, result: result ?? { content: null, isError: false } };
}

async function indexOf(client: Client, ref: ContentRef): Promise<Index> {
  const key = JSON.stringify([client.options.namespace, ref.key]);
  const known = indexes.get(key);
  if (known !== undefined) return known;
  const piece = await loadPiece(client, ref);
  const calls = new Map<string, ToolCall>();
  for (const call of piece.calls) {
    if (call.effect !== 'read' && call.replayOf === null && isAnswered(call))
      calls.set(call.idempotencyKey, call);
  }
  const index = { before: piece.before, calls, left: piece.left ?? [] };
  indexes.set(key, index);
  return index;
}
