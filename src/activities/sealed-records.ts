/** Looks up what earlier runs of a session have sealed: the record of an equal call, and ids of messages. */

import { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { LRUCache } from 'lru-cache';
import type { TakenIdsInput, TakenIdsResult, ToolInput, ToolResult } from '../contract/activities.ts';
import { isAnswered, type ToolCall } from '../contract/calls.ts';
import type { Piece, PieceRef } from '../contract/piece.ts';
import type { ContentRef } from '../contract/thread.ts';
import { loadPiece, refOf } from '../temporal/past.ts';
import { leftAnswer, unavailable } from './earlier-runs.ts';

/** The parts of a piece that are looked up, and the pieces before it. */
interface Index {
  self: PieceRef;
  before: readonly PieceRef[];
  /** Ids of user messages. */
  ids: ReadonlySet<string>;
  /** Effects by their keys. */
  calls: ReadonlyMap<string, ToolCall>;
  /** Mutations of runs abandoned by a reset. */
  left: readonly ToolCall[];
}

/** A cache that is never stale, because a piece never changes. */
const indexes = new LRUCache<string, Index>({ max: 500 });

/**
 * What earlier runs have recorded about a call that is about to run; `null` when they have no equal call.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` or Temporal's `ServiceError` when the record cannot be read. The caller
 * must not run the call then.
 */
export async function sealedAnswer(client: Client, input: ToolInput): Promise<ToolResult | null> {
  if (input.past === undefined) return null;
  for await (const { calls, left } of indexesOf(client, input.past)) {
    const call = calls.get(input.idempotencyKey);
    const answer = call?.name === input.tool ? replayOf(call) : leftAnswer(left, input);
    if (answer !== null) return answer;
  }
  return null;
}

/** The `takenIds` activity: tells which ids of user messages earlier runs have taken. */
export async function runTakenIds({ ids, past }: TakenIdsInput): Promise<TakenIdsResult> {
  const { client } = Context.current();
  const taken = new Set<string>();
  try {
    for await (const index of indexesOf(client, past)) {
      for (const id of ids) if (index.ids.has(id)) taken.add(id);
      if (taken.size === ids.length) break;
    }
  } catch (error) {
    return unavailable(error);
  }
  return { kind: 'found', taken: [...taken], fresh: ids.filter((id) => !taken.has(id)) };
}

/** All pieces of a session, newest first. */
async function* indexesOf(client: Client, ref: ContentRef): AsyncGenerator<Index> {
  const newest = await indexOf(client, ref);
  yield newest;
  for (const before of newest.before.toReversed()) yield indexOf(client, before);
}

/** A piece and all before it, oldest first. */
export async function piecesUpTo(client: Client, newest: ContentRef): Promise<PieceRef[]> {
  const { before, self } = await indexOf(client, newest);
  return [...before, self];
}

/** Puts a piece that this worker has stored or loaded into the cache. */
export function noteStored(client: Client, ref: ContentRef, piece: Piece): Index {
  const calls = new Map<string, ToolCall>();
  for (const call of piece.calls) {
    if (call.effect !== 'read' && call.replayOf === null && isAnswered(call))
      calls.set(call.idempotencyKey, call);
  }
  const ids = new Set(piece.messages.filter(({ role }) => role === 'user').map(({ id }) => id));
  const index = { self: refOf(piece, ref), before: piece.before, ids, calls, left: piece.left ?? [] };
  indexes.set(keyOf(client, ref), index);
  return index;
}

/** The recorded result of a call that has ended, as the result of an equal call. */
function replayOf({ id, status, result }: ToolCall): ToolResult | null {
  if (status.kind !== 'completed' && status.kind !== 'failed') return null;
  return { kind: 'replay', of: id, status, result: result ?? { content: null, isError: false } };
}

async function indexOf(client: Client, ref: ContentRef): Promise<Index> {
  return indexes.get(keyOf(client, ref)) ?? noteStored(client, ref, await loadPiece(client, ref));
}

function keyOf({ options }: Client, { key }: ContentRef): string {
  return JSON.stringify([options.namespace, key]);
}
