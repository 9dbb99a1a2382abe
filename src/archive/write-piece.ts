/** Writing into an archive. */

import { type Change, diff } from '../checkpoints/diff.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { canonicalJson, digestJson, type JsonObject } from '../contract/json.ts';
import { type ArchiveStatements, WHOLE_EVERY } from './database.ts';
import { placeOf } from './place.ts';
import { type ArchivedRun, epochOf, findRun, type Row } from './rows.ts';

/** A piece of a run to be stored after its cursor. */
export interface ArchivePiece {
  sessionId: string;
  runId: string;
  startedAt: number;
  /** The thread's epoch and the run's cursor when the piece was begun. */
  epoch: number;
  after: number;
  checkpoints: readonly Checkpoint[];
  /** The checkpoint of the cursor; `null` before the first. */
  previous: Checkpoint | null;
  events: number;
  complete: boolean;
}

/**
 * Stores a piece and moves the cursor, within a transaction of the caller's.
 *
 * @returns the run, or `null` when somebody else has moved the cursor or deleted the thread: nothing was stored.
 */
export async function writePiece(db: ArchiveStatements, piece: ArchivePiece): Promise<ArchivedRun | null> {
  const { sessionId, runId, startedAt, epoch, after, checkpoints, events, complete } = piece;
  if ((await epochOf(db, sessionId)) !== epoch) return null;
  if (((await findRun(db, sessionId, runId))?.cursor ?? 0) !== after) return null;
  await db.all(
    'INSERT INTO runs (thread_id, run_id, started_at, cursor, events, complete) VALUES (?, ?, ?, 0, 0, 0) ON CONFLICT DO NOTHING',
    sessionId,
    runId,
    startedAt,
  );
  const run = (await findRun(db, sessionId, runId)) as ArchivedRun;
  let previous = (await sameAsStored(db, run, piece.previous)) ? piece.previous : null;
  let cursor = after;
  for (const checkpoint of checkpoints) {
    cursor = placeOf(checkpoint.id)?.eventId ?? 0;
    const { whole, state } = written(checkpoint, previous);
    const { created_at, parent_id, metadata } = checkpoint;
    const digest = digestJson(checkpoint as unknown as JsonObject);
    await db.all(
      'INSERT INTO checkpoints (run_seq, event_id, created_at, parent_id, metadata, whole, state, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      run.seq,
      cursor,
      created_at,
      parent_id,
      canonicalJson(metadata),
      whole,
      state,
      digest,
    );
    previous = checkpoint;
  }
  await db.all(
    'UPDATE runs SET cursor = ?, events = ?, complete = ? WHERE seq = ?',
    cursor,
    events,
    complete ? 1 : 0,
    run.seq,
  );
  return { ...run, cursor, events, complete };
}

/**
 * Whether the cursor's record is what the history folds to now: only then does what follows say what changed. It may
 * not be after a change of this package, which the audit then shows.
 */
async function sameAsStored(
  db: ArchiveStatements,
  run: ArchivedRun,
  checkpoint: Checkpoint | null,
): Promise<boolean> {
  if (checkpoint === null) return false;
  const [row] = await db.all<Pick<Row, 'digest'>>(
    'SELECT digest FROM checkpoints WHERE run_seq = ? AND event_id = ?',
    run.seq,
    run.cursor,
  );
  return row?.digest === digestJson(checkpoint as unknown as JsonObject);
}

/** How a checkpoint's state is written: as changes, unless it is time for a whole one or they are longer. */
function written(checkpoint: Checkpoint, previous: Checkpoint | null): { whole: 0 | 1; state: string } {
  const whole = canonicalJson(checkpoint.state);
  const { step } = checkpoint.metadata;
  if (previous === null || (typeof step === 'number' && step % WHOLE_EVERY === 1))
    return { whole: 1, state: whole };
  const changes = JSON.stringify(diff(previous, checkpoint).map(withoutBefore));
  return changes.length < whole.length ? { whole: 0, state: changes } : { whole: 1, state: whole };
}

/** What was there before is in the record before. */
function withoutBefore(change: Change): object {
  if (change.op === 'add') return change;
  const { before: _before, ...rest } = change;
  return rest;
}
