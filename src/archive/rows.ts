/** Rows of an archive. */
import type { Database } from '../saver/sqlite-file.ts';

/** What an archive knows of a run. */
export interface ArchivedRun {
  seq: number;
  /** Milliseconds since 1970. */
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
export function findRun(db: Database, sessionId: string, runId: string): ArchivedRun | null {
  const row = db
    .prepare('SELECT seq, started_at, cursor, events, complete FROM runs WHERE thread_id = ? AND run_id = ?')
    .get(sessionId, runId) as
    | (Omit<ArchivedRun, 'startedAt' | 'complete'> & Record<'started_at' | 'complete', number>)
    | undefined;
  if (row === undefined) return null;
  const { seq, started_at: startedAt, cursor, events, complete } = row;
  return { seq, startedAt, cursor, events, complete: complete === 1 };
}

/** How often a thread was deleted. */
export function epochOf(db: Database, sessionId: string): number {
  const row = db.prepare('SELECT epoch FROM threads WHERE thread_id = ?').get(sessionId);
  return row === undefined ? 0 : (row as { epoch: number }).epoch;
}
