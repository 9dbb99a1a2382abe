/** Rows of an archive. */
import type { ArchiveStatements } from './database.ts';

/** A run, as stored in an archive. */
export interface ArchivedRun {
  seq: number;
  /** Milliseconds since 1970. Always after the start of the run before, even if the server's clock stepped back. */
  startedAt: number;
  cursor: number;
  events: number;
  complete: boolean;
}

/** A checkpoint's row. */
export interface Row {
  run_seq: number;
  event_id: number;
  created_at: string;
  parent_id: string | null;
  metadata: string;
  whole: number;
  state: string;
  digest: string;
}

/** Reads a run, or `null`. */
export async function findRun(
  db: ArchiveStatements,
  sessionId: string,
  runId: string,
): Promise<ArchivedRun | null> {
  const [row] = await db.all<
    Record<'seq' | 'cursor' | 'events' | 'complete', number> & { started_at: number | string }
  >(
    'SELECT seq, started_at, cursor, events, complete FROM runs WHERE thread_id = ? AND run_id = ?',
    sessionId,
    runId,
  );
  if (row === undefined) return null;
  const { seq, started_at: startedAt, cursor, events, complete } = row;
  // Some drivers return large numbers as strings.
  return { seq, startedAt: Number(startedAt), cursor, events, complete: complete === 1 };
}

/** Reads how often a thread was deleted. */
export async function epochOf(db: ArchiveStatements, sessionId: string): Promise<number> {
  const [row] = await db.all<{ epoch: number }>('SELECT epoch FROM threads WHERE thread_id = ?', sessionId);
  return row?.epoch ?? 0;
}
