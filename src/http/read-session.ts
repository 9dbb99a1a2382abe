/** Looking at sessions: through a worker, and from the history when none answers. */

import type { Session } from '../client/index.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { WORKFLOW } from '../contract/names.ts';
import type { SessionState } from '../contract/state.ts';
import { foldSession } from '../history/index.ts';
import { sessionError } from '../temporal/errors.ts';
import type { Backend } from './operation.ts';

/** How long a worker may take to answer before the history is read instead, in milliseconds. */
const ANSWER_MS = 2_000;

/** Two ways to the same answer. */
interface Ways<T> {
  /** Asks the running session, which needs a worker. */
  live: (session: Session) => Promise<T>;
  /** Makes it of the state that the history gives: closed sessions, and no worker. */
  folded: (state: SessionState) => T;
}

/**
 * Reads something of a session.
 *
 * @throws PerdureError `SESSION_NOT_FOUND`, `SERVER_UNAVAILABLE`, `CHECKPOINT_CORRUPTION`
 */
export async function readSession<T>(
  { client, sessions }: Backend,
  id: string,
  { live, folded }: Ways<T>,
): Promise<T> {
  const session = sessions.get(id);
  try {
    return await client.connection.withAbortSignal(AbortSignal.timeout(ANSWER_MS), () => live(session));
  } catch (error) {
    for (const code of ['SESSION_NOT_FOUND', 'SERVER_UNAVAILABLE'] as const) {
      if (isPerdureError(error, code)) throw error;
    }
  }
  try {
    const { type, runId } = await client.workflow.getHandle(id).describe();
    if (type === WORKFLOW.session) return folded(await foldSession(client, id, runId));
    throw new PerdureError('SESSION_NOT_FOUND', `${id} is a workflow of type ${type}, not a session`);
  } catch (error) {
    throw sessionError(id, error);
  }
}
