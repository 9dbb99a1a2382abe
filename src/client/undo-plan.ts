import type { Client } from '@temporalio/client';
import type { SessionState } from '../contract/state.ts';
import type { UndoPlan } from '../contract/undo.ts';
import { undoPlan } from '../session/undo-plan.ts';
import { earlierEffects } from '../temporal/past.ts';

/** What an undo of a session would do, with the effects of its earlier runs. */
export async function readUndoPlan(client: Client, state: SessionState): Promise<UndoPlan> {
  const { past, sessionId } = state;
  return undoPlan(state, past === undefined ? [] : await earlierEffects(client, sessionId, past));
}
