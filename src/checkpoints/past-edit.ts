/** Whether a session that goes on from a checkpoint can begin with edits of it. */
import type { EditInput } from '../contract/edit.ts';
import type { SessionState } from '../contract/state.ts';
import { editProblem } from '../session/edit.ts';

/**
 * Why a checkpoint's state cannot be edited, or `null`. The session itself would note it, and go on without the edits:
 * who asks before it starts can still choose another checkpoint.
 */
export function pastEditProblem(past: SessionState, edits: EditInput): string | null {
  if (past.batch.length > 0) return 'a turn was under way at this checkpoint: choose one between turns';
  // What was in flight then is not asked of the session that goes on.
  return editProblem({ ...past, inFlight: [], loading: null }, edits)?.message ?? null;
}
