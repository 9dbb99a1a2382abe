import type { Client } from '@temporalio/client';
import { defined } from '../contract/json.ts';
import type { SessionState } from '../contract/state.ts';
import type { UndoPlan, UndoStep } from '../contract/undo.ts';
import { undoPlan } from '../session/undo-plan.ts';
import { earlierEffects } from '../temporal/past.ts';

type ReadState = (sessionId: string) => Promise<SessionState>;

/**
 * What an undo of a session would do, with the effects of its earlier runs. The effects of a sub-agent follow the call
 * that started it: they are undone in the sub-agent's own session.
 */
export async function readUndoPlan(client: Client, state: SessionState, read: ReadState): Promise<UndoPlan> {
  const { past, sessionId } = state;
  const plan = undoPlan(state, past === undefined ? [] : await earlierEffects(client, sessionId, past));
  const steps: UndoStep[] = [];
  for (const step of plan.steps) {
    steps.push(step);
    const { child: session, reason } = step;
    if (session === undefined) continue;
    // A session that was deleted or cannot be read must not hide the rest: the command to type is on the list.
    const below = await read(session)
      .then((own) => readUndoPlan(client, own, read))
      .catch(() => null);
    for (const effect of below?.steps ?? [])
      steps.push({ session, ...defined({ reason }), ...effect, by: 'person' });
  }
  return { ...plan, steps };
}
