/** Checks before a session continues from its past. */

import { effectsSince as since } from '../checkpoints/effects-left.ts';
import type { EffectSince } from '../checkpoints/index.ts';
import { pastEditProblem } from '../checkpoints/past-edit.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import type { EditInput } from '../contract/edit.ts';
import { invalid, PerdureError } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';
import type { Backend } from './operation.ts';

/**
 * The checkpoint from which a session will continue.
 *
 * @throws PerdureError `SESSION_NOT_FOUND`, `CHECKPOINT_NOT_FOUND`, and `INVALID_ARGUMENT` for edits that the session
 * could not make
 */
export async function pastOf(
  backend: Backend,
  { sessionId, checkpointId }: { sessionId: string; checkpointId: string },
  edits: EditInput | undefined,
): Promise<Checkpoint> {
  backend.sessions.get(sessionId);
  const past = await backend.saver.get(sessionId, { checkpointId });
  if (past === null || past.metadata['source'] !== 'session') {
    await backend.sessions.get(sessionId).state();
    throw new PerdureError(
      'CHECKPOINT_NOT_FOUND',
      `Session ${sessionId} has no checkpoint ${checkpointId}. List them: GET /threads/{id}/checkpoints`,
    );
  }
  const problem = edits === undefined ? null : pastEditProblem(past.state as unknown as SessionState, edits);
  if (problem !== null) throw invalid('edits', problem);
  return past;
}

/** The effects since a checkpoint of a session. */
export async function effectsSince({ client, saver }: Backend, past: Checkpoint): Promise<EffectSince[]> {
  return since(client, past, (await saver.get(past.thread_id)) ?? past);
}

/** The error of an unconfirmed rewind. It lists the effects that would stay. */
export function unconfirmed(effects: readonly EffectSince[]): PerdureError {
  return new PerdureError(
    'INVALID_ARGUMENT',
    'confirm: a rewind undoes no effect. Effects that happened after the checkpoint, and stay: ' +
      `${effects.length}, in details.effects. Send the same with confirm: true`,
    { details: { field: 'confirm', effects } },
  );
}
