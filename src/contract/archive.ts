/** The exporter of checkpoints into an archive: what its workflow is given, asks of its activity and answers. */

/** A run that cannot be exported: its history does not fold. It stays here, and is tried again. */
export interface UnreadableRun {
  sessionId: string;
  runId: string;
  message: string;
}

/** How far an archive has come, as its exporter knows it. */
export interface ArchiveStatus {
  name: string;
  /** The archive that the exporter writes to, once it has; it refuses another. */
  archiveId: string | null;
  /** Checkpoints stored by this exporter. */
  stored: number;
  /** ISO 8601: what was in the histories at this time is in the archive, but for `unreadable`. Its age is the lag. */
  upTo: string | null;
  /** Why nothing is stored at present. It is tried again until it succeeds; nothing is left out. */
  failure: { message: string; code: string; since: string; attempts: number } | null;
  /** At most {@link UNREADABLE_SHOWN}. */
  unreadable: UnreadableRun[];
}

/** The most runs that {@link ArchiveStatus.unreadable} shows. */
export const UNREADABLE_SHOWN = 20;

/** Input of the exporter: its name, and what one run hands to the next. */
export interface ArchiveInput {
  name: string;
  status?: ArchiveStatus;
}

/** Input of one round. */
export interface ArchiveRoundInput {
  /** The archive that was written to before. */
  archiveId: string | null;
}

/** What a round has done. */
export interface ArchiveRound {
  archiveId: string;
  stored: number;
  upTo: string | null;
  unreadable: UnreadableRun[];
}

/** The activities of the exporter's worker. */
export interface ArchiveActivities {
  archiveRound(input: ArchiveRoundInput): Promise<ArchiveRound>;
}

/** The query of the exporter: {@link ArchiveStatus}. */
export const ARCHIVE_QUERY = 'status';

/** The exporter's workflow id and task queue: one exporter of a name in a namespace. */
export function archiveWorkflowId(name: string): string {
  return `perdure-archive/${name}`;
}
