/** Checkpoints for the verbs that show them. None of this needs a worker where the thread is a session. */
import type { Checkpoint, CheckpointSaver } from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';
import { command } from '../session/commands.ts';
import { openExisting } from './archives.ts';
import type { Cli } from './cli.ts';

/** The option that {@link openSaver} serves. */
export const ARCHIVE = [
  '--archive <place>',
  'look also in this archive, a file or the URL of a PostgreSQL database (default: PERDURE_ARCHIVE)',
] as const;

/** The saver of the server that the verb talks to, with the archive of a file behind it where one is named. */
export async function openSaver(
  cli: Cli,
  sessionId: string,
  archive: string | undefined = process.env['PERDURE_ARCHIVE'] || undefined,
): Promise<Pick<CheckpointSaver, 'get' | 'list'>> {
  cli.sessionId = sessionId;
  const behind = archive === undefined ? undefined : await openExisting(archive);
  const { client } = await cli.connect();
  const { TemporalSaver } = await import('../saver/temporal-saver.ts');
  const saver = new TemporalSaver(client, { taskQueue: cli.taskQueue });
  if (behind === undefined) return saver;
  const { ArchivedSaver } = await import('../archive/index.ts');
  return new ArchivedSaver(saver, behind);
}

/**
 * A checkpoint, the latest when none is named.
 *
 * @throws PerdureError `CHECKPOINT_NOT_FOUND`, `SESSION_NOT_FOUND`, and what the saver throws
 */
export async function readCheckpoint(
  cli: Cli,
  sessionId: string,
  checkpointId?: string,
  archive?: string,
): Promise<Checkpoint> {
  const saver = await openSaver(cli, sessionId, archive);
  const found = await saver.get(sessionId, checkpointId === undefined ? {} : { checkpointId });
  if (found !== null) return found;
  throw checkpointId === undefined
    ? await noCheckpoints(cli, sessionId)
    : noCheckpoint(sessionId, checkpointId);
}

/** The error of a checkpoint that is not there. */
export function noCheckpoint(sessionId: string, checkpointId: string): PerdureError {
  const next = command('checkpoints', 'ls', sessionId);
  return new PerdureError(
    'CHECKPOINT_NOT_FOUND',
    `${sessionId} has no checkpoint ${checkpointId}, or the server no longer has it. List them: ${next}`,
  );
}

/** The error of a session without checkpoints: there is none, or no worker has taken it yet. */
export async function noCheckpoints(cli: Cli, sessionId: string): Promise<PerdureError> {
  const { client } = await cli.connect();
  try {
    await client.workflow.getHandle(sessionId).describe();
  } catch {
    return new PerdureError('SESSION_NOT_FOUND', `There is no session ${sessionId}`);
  }
  return new PerdureError(
    'CHECKPOINT_NOT_FOUND',
    `Session ${sessionId} has no checkpoint yet: no worker has taken it`,
  );
}

/** The state of a session's checkpoint; `null` of another thread's. */
export function sessionStateOf({ state, metadata }: Checkpoint): SessionState | null {
  return metadata['source'] === 'session' ? (state as unknown as SessionState) : null;
}
