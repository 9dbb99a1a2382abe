/** Reads checkpoints for the verbs that show them. Sessions need no worker for this. */
import type { Checkpoint, CheckpointSaver } from '../contract/checkpoint.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';
import { command } from '../session/commands.ts';
import { openExisting } from './archives.ts';
import type { Cli } from './cli.ts';

/** The option that {@link openSaver} serves. */
export const ARCHIVE = [
  '--archive <place>',
  'also read this archive, a file or a PostgreSQL URL (default: PERDURE_ARCHIVE)',
] as const;

/** A saver of the server, with the named archive behind it. */
export async function openSaver(
  cli: Cli,
  sessionId: string,
  archive: string | undefined = process.env['PERDURE_ARCHIVE'] || undefined,
): Promise<Pick<CheckpointSaver, 'get' | 'list'>> {
  cli.sessionId = sessionId;
  const behind = archive === undefined ? undefined : await openExisting(cli, archive);
  const { client } = await cli.connect();
  const { TemporalSaver } = await import('../saver/temporal-saver.ts');
  const saver = new TemporalSaver(client, { taskQueue: cli.taskQueue });
  if (behind === undefined) return saver;
  const { ArchivedSaver } = await import('../archive/index.ts');
  return new ArchivedSaver(saver, behind);
}

/** A checkpoint, by default the latest. @throws PerdureError `CHECKPOINT_NOT_FOUND`, `SESSION_NOT_FOUND` */
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

/**
 * A checkpoint with the messages and calls of all runs of its session. After the session was deleted, it is the
 * archived checkpoint, which has those of its own run only.
 *
 * @throws PerdureError as {@link readCheckpoint}
 */
export async function readWhole(
  cli: Cli,
  sessionId: string,
  checkpointId?: string,
  archive?: string,
): Promise<Checkpoint> {
  const checkpoint = await readCheckpoint(cli, sessionId, checkpointId, archive);
  const { client } = await cli.connect();
  const { wholeCheckpoint } = await import('../checkpoints/whole-checkpoint.ts');
  return wholeCheckpoint(client, checkpoint).catch((error: unknown) => {
    if (!isPerdureError(error, 'CHECKPOINT_CORRUPTION')) throw error;
    cli.terminal.progress(`only the messages and calls of its run are shown: ${error.message}`);
    return checkpoint;
  });
}

export function noCheckpoint(sessionId: string, checkpointId: string): PerdureError {
  const next = command('checkpoints', 'ls', sessionId);
  return new PerdureError(
    'CHECKPOINT_NOT_FOUND',
    `Session ${sessionId} has no checkpoint ${checkpointId}, or the server has deleted it. List its checkpoints: ${next}`,
  );
}

/** The error of a session without checkpoints: it does not exist, or no worker has taken it yet. */
export async function noCheckpoints(cli: Cli, sessionId: string): Promise<PerdureError> {
  const { client } = await cli.connect();
  try {
    await client.workflow.getHandle(sessionId).describe();
  } catch {
    return new PerdureError('SESSION_NOT_FOUND', `There is no session ${sessionId}`);
  }
  return new PerdureError(
    'CHECKPOINT_NOT_FOUND',
    `Session ${sessionId} has no checkpoint yet: no worker has run it`,
  );
}

/** The state of a session's checkpoint, or `null` for another thread's. */
export function sessionStateOf({ state, metadata }: Checkpoint): SessionState | null {
  return metadata['source'] === 'session' ? (state as unknown as SessionState) : null;
}
