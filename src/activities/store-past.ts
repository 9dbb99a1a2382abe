/** The `storePast` activity: stores what leaves a session's run, read from the run's own history. */

import { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import type { StorePastInput, StorePastResult } from '../contract/activities.ts';
import { messageOf } from '../contract/errors.ts';
import { shortDigest } from '../contract/keys.ts';
import { unsealedFrom } from '../contract/past.ts';
import { MESSAGE_NOTES, type MessageNotes, type Piece, type PieceRef } from '../contract/piece.ts';
import type { SessionState } from '../contract/state.ts';
import type { ContentRef } from '../contract/thread.ts';
import { foldHistory } from '../history/index.ts';
import { readPages } from '../temporal/index.ts';
import { closePieces, loadPiece, refOf, storePiece } from '../temporal/past.ts';
import { isGone, leftCalls } from './earlier-runs.ts';

const HEARTBEAT_MS = 2_000;
/**
 * So many pieces of one level are merged with the next. With one level each message is stored twice, and a session of 5,000
 * turns has 20 pieces at most.
 */
const MOST_MERGED = { pieces: 9, levels: 1 } as const;

/** Stores a piece. The result names it. A repeated attempt stores nothing twice. */
export async function runStorePast({ digest }: StorePastInput): Promise<StorePastResult> {
  const context = Context.current();
  const { client, info } = context;
  if (info.workflowExecution === undefined) throw new Error('this activity runs only in a session');
  const signs = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
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
    const { past, transcript, calls, notices, pauses } = state;
    const { piece, merged } = await grown(client, past?.newest, {
      messages: transcript.slice(unsealedFrom(state)),
      calls,
      notices,
      pauses: pauses.filter(({ resumedAt }) => resumedAt !== null),
      ...(left.length === 0 ? {} : { left }),
      ...notesOf(state),
    });
    const newest = await storePiece(client, { sessionId, taskQueue: info.taskQueue }, piece);
    await closePieces(client, merged);
    return { kind: 'stored', newest, ...(left.length === 0 ? {} : { left: true }) };
  } catch (error) {
    // Temporal repeats the attempt when the server cannot be reached. A history that is gone stays gone.
    if (!isGone(error)) throw error;
    return { kind: 'unavailable', message: messageOf(error) };
  } finally {
    clearInterval(signs);
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
  };
  const left = all.flatMap((each) => each.left ?? []);
  if (left.length > 0) piece.left = left;
  for (const notes of MESSAGE_NOTES) {
    const every = all.flatMap((each) => Object.entries(each[notes] ?? {}));
    if (every.length > 0) piece[notes] = Object.fromEntries(every);
  }
  return { piece, merged };
}

function notesOf(state: SessionState): MessageNotes {
  const notes: MessageNotes = {};
  for (const name of MESSAGE_NOTES) {
    const own = state[name];
    if (own !== undefined) notes[name] = own;
  }
  return notes;
}
