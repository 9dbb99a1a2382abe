/** The workflow that exports checkpoints into an archive. It runs for ever and survives every failure. */

import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  continueAsNew,
  defineQuery,
  proxyActivities,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import {
  ARCHIVE_QUERY,
  type ArchiveActivities,
  type ArchiveInput,
  type ArchiveStatus,
} from '../contract/archive.ts';
import { messageOf } from '../contract/errors.ts';

/** Rounds after which the exporter continues as new, so that its history stays short. */
const ROUNDS = 200;
const BACKOFF_MS = { first: 1_000, most: 60_000 } as const;

const { archiveRound } = proxyActivities<ArchiveActivities>({
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '10 seconds',
  // The workflow itself retries, so that the status can show a failure first.
  retry: { maximumAttempts: 1 },
});

/**
 * Stores checkpoints, round after round. Only the archive knows what is stored, so a repeated round stores nothing
 * twice. It ends when it is cancelled.
 */
export async function archiveExporter({ name, status: carried }: ArchiveInput): Promise<void> {
  const status: ArchiveStatus = carried ?? {
    name,
    archiveId: null,
    stored: 0,
    upTo: null,
    failure: null,
    unreadable: [],
  };
  setHandler(defineQuery<ArchiveStatus>(ARCHIVE_QUERY), () => status, {
    description: 'How far the archive has come, and what blocks it',
  });
  for (let round = 0; round < ROUNDS && !workflowInfo().continueAsNewSuggested; round++) {
    try {
      const { archiveId, stored, upTo, unreadable } = await archiveRound({ archiveId: status.archiveId });
      status.archiveId = archiveId;
      status.stored += stored;
      status.upTo = upTo ?? status.upTo;
      status.unreadable = unreadable;
      status.failure = null;
    } catch (error) {
      if (CancellationScope.current().consideredCancelled) throw error;
      const attempts = (status.failure?.attempts ?? 0) + 1;
      const since = status.failure?.since ?? new Date().toISOString();
      status.failure = { ...reasonOf(error), since, attempts };
      await sleep(Math.min(BACKOFF_MS.first * 2 ** Math.min(attempts - 1, 10), BACKOFF_MS.most));
    }
  }
  await continueAsNew<typeof archiveExporter>({ name, status });
}

function reasonOf(error: unknown): { message: string; code: string } {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  const message = messageOf(cause);
  const code = cause instanceof ApplicationFailure ? cause.type : undefined;
  return { message: message.slice(0, 2_000), code: code ?? 'UNEXPECTED' };
}
