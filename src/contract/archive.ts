/** The archive's exporter: the inputs and results of its workflow and its activity. */

/** A run that cannot be folded, so it is not exported yet. The exporter tries again. */
export interface UnreadableRun {
  sessionId: string;
  runId: string;
  message: string;
}

/** The progress of an archive's exporter. */
export interface ArchiveStatus {
  name: string;
  /** The archive that the exporter writes to. It refuses to write to another one. */
  archiveId: string | null;
  /** Checkpoints stored by this exporter. */
  stored: number;
  /** ISO 8601: the archive has everything up to this time, except `unreadable`. */
  upTo: string | null;
  /** Why nothing is stored at present. The exporter tries again until it succeeds. */
  failure: { message: string; code: string; since: string; attempts: number } | null;
  /** At most {@link UNREADABLE_SHOWN}. */
  unreadable: UnreadableRun[];
}

/** The most runs that {@link ArchiveStatus.unreadable} shows. */
export const UNREADABLE_SHOWN = 20;

/** Input of the exporter: its name, and what one run passes to the next. */
export interface ArchiveInput {
  name: string;
  status?: ArchiveStatus;
}

export interface ArchiveRoundInput {
  /** The archive that earlier rounds wrote to; `null` before the first. */
  archiveId: string | null;
}

export interface ArchiveRound {
  archiveId: string;
  stored: number;
  upTo: string | null;
  unreadable: UnreadableRun[];
}

export interface ArchiveActivities {
  archiveRound(input: ArchiveRoundInput): Promise<ArchiveRound>;
}

/** The query of the exporter: {@link ArchiveStatus}. */
export const ARCHIVE_QUERY = 'status';

/** The exporter's workflow id and task queue. */
export function archiveWorkflowId(name: string): string {
  return `perdure-archive/${name}`;
}
