/** What a rewind over HTTP would leave as it is: told before the word is said, and again with the answer. */
import { PerdureError } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';
import { type EffectSince, effectsSince } from '../saver/index.ts';
import type { Backend } from './operation.ts';
import { readSession } from './read-session.ts';

/**
 * The session's agent at a checkpoint, and the effects that have happened after it.
 *
 * @throws PerdureError `SESSION_NOT_FOUND`, `CHECKPOINT_NOT_FOUND`, and what the saver throws
 */
export async function lookBack(
  backend: Backend,
  sessionId: string,
  checkpointId: string,
): Promise<{ agent: string; effects: EffectSince[] }> {
  const { saver, sessions } = backend;
  sessions.get(sessionId);
  const [then, now] = await Promise.all([saver.get(sessionId, { checkpointId }), saver.get(sessionId)]);
  if (then === null || now === null || then.metadata['source'] !== 'session') {
    await readSession(backend, sessionId, { live: (session) => session.state(), folded: () => undefined });
    throw new PerdureError(
      'CHECKPOINT_NOT_FOUND',
      `Session ${sessionId} has no checkpoint ${checkpointId}. List them: GET /threads/{id}/checkpoints`,
    );
  }
  const effects = effectsSince(then, now);
  return { agent: (then.state as unknown as SessionState).agent, effects };
}

/** The refusal of a rewind that nobody has confirmed yet, with what to know before. */
export function unconfirmed(effects: readonly EffectSince[]): PerdureError {
  return new PerdureError(
    'INVALID_ARGUMENT',
    'confirm: a rewind undoes no effect. Those that happened after the checkpoint, and stay, are ' +
      `${effects.length}: see details.effects. Send the same with confirm: true`,
    { details: { field: 'confirm', effects } },
  );
}
