import type { Client } from '@temporalio/client';
import { ARCHIVE_QUERY, type ArchiveStatus, archiveWorkflowId } from '../contract/archive.ts';
import { isPerdureError, PerdureError, UNANSWERED } from '../contract/errors.ts';
import { WORKFLOW } from '../contract/names.ts';
import { sessionError } from '../temporal/errors.ts';

/** The default name of an exporter. */
export const DEFAULT_ARCHIVE = 'default';
const NAME_LIMIT = 100;

/** Starts the exporter with this name, unless it runs. It needs a worker of its own: `createArchiveWorker`. */
export async function startArchive(client: Client, name: string): Promise<void> {
  if (name.trim() === '' || name.length > NAME_LIMIT) {
    throw new PerdureError('INVALID_ARGUMENT', `name: write 1 to ${NAME_LIMIT} characters`);
  }
  const workflowId = archiveWorkflowId(name);
  await client.workflow.start(WORKFLOW.archive, {
    workflowId,
    taskQueue: workflowId,
    workflowIdConflictPolicy: 'USE_EXISTING',
    args: [{ name }],
    staticSummary: `copies checkpoints of sessions into the archive ${name}`,
  });
}

/**
 * The progress of the exporter with this name, and what blocks it.
 *
 * @throws PerdureError `NO_WORKER` when its worker does not run, `SESSION_NOT_FOUND` when it was never started,
 * `SERVER_UNAVAILABLE`
 */
export async function archiveStatus(client: Client, name: string = DEFAULT_ARCHIVE): Promise<ArchiveStatus> {
  const workflowId = archiveWorkflowId(name);
  try {
    return await client.withDeadline(Date.now() + 10_000, () =>
      client.workflow.getHandle(workflowId).query<ArchiveStatus>(ARCHIVE_QUERY),
    );
  } catch (error) {
    const known = sessionError(workflowId, error);
    if (!isPerdureError(known)) throw known;
    const { code } = known;
    const silent = UNANSWERED.includes(code);
    if (!silent && code !== 'SESSION_NOT_FOUND') throw known;
    const why = silent ? 'does not answer' : 'was never started';
    throw new PerdureError(code, `The exporter ${name} ${why}. Start its worker`, {
      cause: known,
    });
  }
}
