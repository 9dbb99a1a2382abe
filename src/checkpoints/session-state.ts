/** The state of a session's checkpoint, typed. */
import type { Checkpoint } from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';

/**
 * The session's state in a checkpoint.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when it is not a session's checkpoint, or has an unknown version.
 */
export function sessionStateOf(checkpoint: Checkpoint): SessionState {
  const { schema, sessionId } = checkpoint.state;
  if (checkpoint.metadata['source'] !== 'session' || typeof sessionId !== 'string') {
    throw new PerdureError(
      'CHECKPOINT_CORRUPTION',
      `Checkpoint ${checkpoint.id} of thread ${checkpoint.thread_id} is not a session's`,
    );
  }
  if (schema !== 1) {
    throw new PerdureError(
      'CHECKPOINT_CORRUPTION',
      `Checkpoint ${checkpoint.id} of session ${sessionId} has schema ${JSON.stringify(schema)}, but this version of perdure reads 1`,
    );
  }
  return checkpoint.state as unknown as SessionState;
}
