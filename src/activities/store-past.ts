/** The `storePast` activity: stores what leaves a session's run. */

import type { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import type { StorePastInput, StorePastResult } from '../contract/activities.ts';
import { shortDigest } from '../contract/keys.ts';
import { leavingOf, notesOf, type Piece, type PieceRef } from '../contract/piece.ts';
import type { ContentRef } from '../contract/thread.ts';
import { foldHistory } from '../history/index.ts';
import { readPages } from '../temporal/index.ts';
import { closePieces, loadPiece, storePiece } from '../temporal/past.ts';
import { leftCalls, unavailable } from './earlier-runs.ts';
import type { HandedPasts, RunPast } from './handed-past.ts';
import { beating } from './heartbeats.ts';
import { noteStored, piecesUpTo } from './sealed-records.ts';

/**
 * How many pieces of one level the next piece absorbs, and at how many levels. With one level, each message is stored
 * twice, and a session of 5,000 turns has at most 20 pieces.
 */
const MOST_MERGED = { pieces: 9, levels: 1 } as const;

/** Stores a piece. The result names it. A retry stores nothing twice. */
export function runStorePast(handed: HandedPasts, input: StorePastInput): Promise<StorePastResult> {
  return beating((context) => storePast(context, handed, input));
}

async function storePast(
  context: Context,
  handed: HandedPasts,
  input: StorePastInput,
): Promise<StorePastResult> {
  const { client, info } = context;
  if (info.workflowExecution === undefined) throw new Error('this activity runs only in a session');
  try {
    const { workflowId: sessionId, runId } = info.workflowExecution;
    const known = handed.take(runId, input);
    const [past, left] = await Promise.all([known ?? readPast(context, input), leftCalls(context)]);
    if (past === null)
      return { kind: 'unavailable', message: 'the history of this run gives another transcript' };
    const own = { ...past.leaving, ...(left.length === 0 ? {} : { left }) };
    const { piece, merged } = await grown(client, past.newest, own);
    const newest = await storePiece(client, { sessionId, taskQueue: info.taskQueue }, piece);
    await closePieces(client, merged);
    noteStored(client, newest, piece);
    const pauses = past.leaving.pauses.length;
    return { kind: 'stored', newest, ...(left.length === 0 ? {} : { left: true }), pauses, allIds: true };
  } catch (error) {
    return unavailable(error);
  }
}

/** Reads what leaves the run from its own history; `null` when the history has another transcript. */
async function readPast({ client, info }: Context, { digest }: StorePastInput): Promise<RunPast | null> {
  const { workflowId = '', runId = '' } = info.workflowExecution ?? {};
  const { state } = await foldHistory(readPages(client, { workflowId, runId }), client.options, { runId });
  if (state === null || shortDigest(state.position.digest) !== digest) return null;
  return { leaving: leavingOf(state), ...(state.past && { newest: state.past.newest }) };
}

/** Makes the next piece. It absorbs small pieces of one level, so that a session keeps few pieces. */
async function grown(
  client: Client,
  newest: ContentRef | undefined,
  own: Omit<Piece, 'level' | 'before'>,
): Promise<{ piece: Piece; merged: PieceRef[] }> {
  const before = newest === undefined ? [] : await piecesUpTo(client, newest);
  let level = 0;
  let count = 0;
  for (; level < MOST_MERGED.levels; level++, count += MOST_MERGED.pieces) {
    const equal = before.slice(0, before.length - count).slice(-MOST_MERGED.pieces);
    if (equal.length < MOST_MERGED.pieces || !equal.every((ref) => ref.level === level)) break;
  }
  const merged = before.splice(before.length - count, count);
  const pieces: Omit<Piece, 'level' | 'before'>[] = await Promise.all(
    merged.map((ref) => loadPiece(client, ref)),
  );
  const all = [...pieces, own];
  const piece: Piece = {
    namespace: own.namespace,
    level,
    before,
    messages: all.flatMap(({ messages }) => messages),
    calls: all.flatMap(({ calls }) => calls),
    notices: all.flatMap(({ notices }) => notices),
    pauses: all.flatMap(({ pauses }) => pauses),
    ...notesOf(all),
  };
  const left = all.flatMap((each) => each.left ?? []);
  if (left.length > 0) piece.left = left;
  return { piece, merged };
}
