/** Rows of an archive. */
import type { ArchiveStatements } from './database.ts';

/** What an archive knows of a run. */
export interface ArchivedRun {
  seq: number;
  /** In milliseconds since 1970; after that of the run that it has followed on, whatever the server's clock said. */
  startedAt: number;
  cursor: number;
  events: number;
  complete: boolean;
}

/** A checkpoint as it is written. */
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

/** What is known of a run, or `null`. */
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
  // Some drivers give large numbers as texts.
  return { seq, startedAt: Number(startedAt), cursor, events, complete: complete === 1 };
}

/** How often a thread was deleted. */
export async function epochOf(db: ArchiveStatements, sessionId: string): Promise<number> {
  const [row] = await db.all<{ epoch: number }>('SELECT epoch FROM threads WHERE thread_id = ?', sessionId);
  return row?.epoch ?? 0;
}
