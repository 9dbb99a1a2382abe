/** Equal calls: the session executes one of them, and its record answers the others. */
import { isAnswered, type ToolCall } from '../contract/calls.ts';
import type { SessionState } from '../contract/state.ts';
import type { Step } from './events.ts';
import { isOpen } from './state.ts';

export function answerOrRelease(call: ToolCall, target: ToolCall): Step {
  return isAnswered(target)
    ? { type: 'replay_call', callId: call.id, from: target.id }
    : { type: 'release_call', callId: call.id };
}

/** The newest equal call whose record or outcome answers this one. */
function twinOf({ calls }: SessionState, call: ToolCall): ToolCall | undefined {
  // A plain loop that tests the rarest condition first, because a long session has many calls.
  for (let i = calls.length - 1; i >= 0; i--) {
    const other = calls[i];
    if (other?.idempotencyKey !== call.idempotencyKey || other.id === call.id || other.replayOf !== null)
      continue;
    if (isAnswered(other) || isOpen(other) || other.status.kind === 'backoff') return other;
  }
  return undefined;
}

/** The step instead of a dispatch, if an equal call is on record or in progress; otherwise `null`. */
export function answerOf(state: SessionState, call: ToolCall): Step | null {
  const carried = state.carried.find(
    ({ idempotencyKey, undone, open }) =>
      idempotencyKey === call.idempotencyKey && undone !== true && open !== true,
  );
  if (carried !== undefined) {
    return carried.doubt === undefined
      ? { type: 'replay_carried', callId: call.id, effect: carried }
      : { type: 'doubt_call', callId: call.id, reason: carried.doubt };
  }
  // Checked before each dispatch: another call may have been dispatched since the last *absent*.
  if (call.scope !== 'call') {
    const twin = twinOf(state, call);
    if (twin !== undefined) {
      return isAnswered(twin)
        ? { type: 'replay_call', callId: call.id, from: twin.id }
        : { type: 'defer_call', callId: call.id, to: twin.id };
    }
  }
  return null;
}
