/** The state of a session's checkpoint, typed. */
import type { Checkpoint } from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';

/**
 * The session's state in a checkpoint.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when it is not a session's checkpoint or has an unknown version.
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

/**
 * The session's state in a checkpoint that holds the messages and calls of all runs.
 *
 * @throws PerdureError as {@link sessionStateOf}; `INVALID_ARGUMENT` when it holds only those of one run
 */
export function wholeStateOf(checkpoint: Checkpoint): SessionState {
  const state = sessionStateOf(checkpoint);
  if (state.past === undefined) return state;
  throw new PerdureError(
    'INVALID_ARGUMENT',
    `checkpoint: ${checkpoint.id} of session ${state.sessionId} lacks the ${state.past.messages} messages of its earlier runs. Pass the result of wholeCheckpoint(client, checkpoint)`,
    { details: { field: 'checkpoint' } },
  );
}
