/** Checks whether a session that starts from a checkpoint can begin with edits. */
import type { EditInput } from '../contract/edit.ts';
import type { SessionState } from '../contract/state.ts';
import { editProblem } from '../session/edit.ts';

/**
 * Why a checkpoint's state cannot be edited, or `null`. The session itself would note the problem and pause without the
 * edits. A caller that asks first can choose another checkpoint.
 */
export function pastEditProblem(past: SessionState, edits: EditInput): string | null {
  if (past.batch.length > 0)
    return 'a turn was running at this checkpoint: choose a checkpoint between turns';
  // The new session does not repeat commands that were in flight at the checkpoint.
  return editProblem({ ...past, inFlight: [], loading: null }, edits)?.message ?? null;
}
