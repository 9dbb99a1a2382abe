/** The `storePast` activity: stores what leaves a session's run, read from the run's own history. */

import type { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import type { StorePastInput, StorePastResult } from '../contract/activities.ts';
import { shortDigest } from '../contract/keys.ts';
import { isOver, sealedCalls, unsealedFrom } from '../contract/past.ts';
import type { Piece, PieceRef } from '../contract/piece.ts';
import type { ContentRef } from '../contract/thread.ts';
import { foldHistory } from '../history/index.ts';
import { readPages } from '../temporal/index.ts';
import { closePieces, loadPiece, notesOf, refOf, storePiece } from '../temporal/past.ts';
import { leftCalls, unavailable } from './earlier-runs.ts';
import { beating } from './heartbeats.ts';

/**
 * So many pieces of one level are merged with the next. With one level each message is stored twice, and a session of 5,000
 * turns has 20 pieces at most.
 */
const MOST_MERGED = { pieces: 9, levels: 1 } as const;

/** Stores a piece. The result names it. A repeated attempt stores nothing twice. */
export function runStorePast(input: StorePastInput): Promise<StorePastResult> {
  return beating((context) => storePast(context, input));
}

async function storePast(context: Context, { digest }: StorePastInput): Promise<StorePastResult> {
  const { client, info } = context;
  if (info.workflowExecution === undefined) throw new Error('this activity runs only in a session');
  try {
    const { workflowId: sessionId, runId } = info.workflowExecution;
    const pages = readPages(client, info.workflowExecution);
    const [{ state }, left] = await Promise.all([
      foldHistory(pages, client.options, { runId }),
      leftCalls(context),
    ]);
    if (state === null || shortDigest(state.position.digest) !== digest) {
      return { kind: 'unavailable', message: 'the history of this run gives another transcript' };
    }
    const { past, transcript, notices } = state;
    const pauses = state.pauses.filter(isOver);
    const { piece, merged } = await grown(client, past?.newest, {
      messages: transcript.slice(unsealedFrom(state)),
      calls: state.calls.slice(0, sealedCalls(state)),
      notices,
      pauses,
      ...(left.length === 0 ? {} : { left }),
      ...notesOf([state]),
    });
    const newest = await storePiece(client, { sessionId, taskQueue: info.taskQueue }, piece);
    await closePieces(client, merged);
    return { kind: 'stored', newest, ...(left.length === 0 ? {} : { left: true }), pauses: pauses.length };
  } catch (error) {
    return unavailable(error);
  }
}

/** The piece after others. Small pieces of one level are merged into it, so that a session keeps few of them. */
async function grown(
  client: Client,
  newest: ContentRef | undefined,
  own: Omit<Piece, 'schema' | 'level' | 'before'>,
): Promise<{ piece: Piece; merged: PieceRef[] }> {
  if (newest === undefined) return { piece: { schema: 1, level: 0, before: [], ...own }, merged: [] };
  const last = await loadPiece(client, newest);
  const before = [...last.before, refOf(last, newest)];
  let level = 0;
  let count = 0;
  for (; level < MOST_MERGED.levels; level++, count += MOST_MERGED.pieces) {
    const equal = before.slice(0, before.length - count).slice(-MOST_MERGED.pieces);
    if (equal.length < MOST_MERGED.pieces || !equal.every((ref) => ref.level === level)) break;
  }
  const merged = before.splice(before.length - count, count);
  const pieces: Omit<Piece, 'schema' | 'level' | 'before'>[] = [];
  for (const ref of merged) pieces.push(await loadPiece(client, ref));
  const all = [...pieces, own];
  const piece: Piece = {
    schema: 1,
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
