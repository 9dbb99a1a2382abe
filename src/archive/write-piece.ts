/** Writes into an archive. */

import { type Change, diff } from '../checkpoints/diff.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { canonicalJson, digestJson, type JsonObject } from '../contract/json.ts';
import { checkpointPlace } from '../temporal/checkpoint-id.ts';
import { type ArchiveStatements, WHOLE_EVERY } from './database.ts';
import { type ArchivedRun, epochOf, findRun, type Row } from './rows.ts';

/** The next checkpoints of a run, to be stored after its cursor. */
export interface ArchivePiece {
  sessionId: string;
  runId: string;
  startedAt: number;
  /** The thread's epoch and the run's cursor when the piece was begun. */
  epoch: number;
  after: number;
  checkpoints: readonly Checkpoint[];
  /** The checkpoint at the cursor. `null` before the first one. */
  previous: Checkpoint | null;
  events: number;
  complete: boolean;
}

/**
 * Stores a piece and moves the cursor, inside the caller's transaction.
 *
 * @param encode - encodes the JSON of a record's state or metadata
 * @returns the run, or `null` when another process has moved the cursor or deleted the thread. Then nothing was stored.
 */
export async function writePiece(
  db: ArchiveStatements,
  piece: ArchivePiece,
  encode: (json: string) => Promise<string>,
): Promise<ArchivedRun | null> {
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
    cursor = checkpointPlace(checkpoint.id)?.eventId ?? 0;
    const { whole, state } = written(checkpoint, previous);
    const { created_at, parent_id, metadata } = checkpoint;
    const digest = digestJson(checkpoint as unknown as JsonObject);
    await db.all(
      // After the cursor was set back, some rows exist already: they are overwritten.
      `INSERT INTO checkpoints (run_seq, event_id, created_at, parent_id, metadata, whole, state, digest)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_seq, event_id) DO UPDATE SET created_at = excluded.created_at,
         parent_id = excluded.parent_id, metadata = excluded.metadata, whole = excluded.whole, state = excluded.state,
         digest = excluded.digest`,
      run.seq,
      cursor,
      created_at,
      parent_id,
      await encode(canonicalJson(metadata)),
      whole,
      await encode(state),
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
 * Whether the record at the cursor equals what the history folds to now. Only then can the next record be stored as
 * changes. It may differ after an upgrade of this package; the audit shows that.
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

/** Encodes a checkpoint's state: as changes, unless a whole state is due or shorter. */
function written(checkpoint: Checkpoint, previous: Checkpoint | null): { whole: 0 | 1; state: string } {
  const whole = canonicalJson(checkpoint.state);
  const { step } = checkpoint.metadata;
  if (previous === null || (typeof step === 'number' && step % WHOLE_EVERY === 1))
    return { whole: 1, state: whole };
  const changes = JSON.stringify(diff(previous, checkpoint).map(withoutBefore));
  return changes.length < whole.length ? { whole: 0, state: changes } : { whole: 1, state: whole };
}

/** Drops the old values: the record before has them. */
function withoutBefore(change: Change): object {
  if (change.op === 'add') return change;
  const { before: _before, ...rest } = change;
  return rest;
}
