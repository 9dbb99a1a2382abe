import type { Checkpoint } from '../../contract/checkpoint.ts';
import type { JsonValue } from '../../contract/json.ts';
import type { SessionState } from '../../contract/state.ts';
import { sameCall } from '../../history/index.ts';
import { sessionStateOf } from './session-state.ts';

/** An effect that has happened since a checkpoint. */
export interface EffectSince {
  callId: string;
  tool: string;
  /** `null` of an effect that an earlier rewind has left behind: only its output is still known. */
  args: JsonValue;
  output: JsonValue;
  completedAt: string | null;
}

/**
 * The mutations that have completed between two checkpoints of a session: what a rewind to the first does not undo, and
 * answers from the record when the agent comes to it again. Look at them before `Sessions.rewind`.
 *
 * @param then - the checkpoint to go back to.
 * @param now - the latest.
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when one is not a session's.
 */
export function effectsSince(then: Checkpoint, now: Checkpoint): EffectSince[] {
  return effectsBetween(sessionStateOf(then), sessionStateOf(now));
}

/** {@link effectsSince}, of states. */
export function effectsBetween(past: SessionState, present: SessionState): EffectSince[] {
  const doneThen = new Set(past.calls.filter(({ status }) => status.kind === 'completed').map(sameCall));
  const carriedThen = new Set(past.carried.map(({ idempotencyKey }) => idempotencyKey));
  const carried = present.carried
    .filter(({ idempotencyKey, doubt }) => !carriedThen.has(idempotencyKey) && doubt === undefined)
    .filter(({ callId, idempotencyKey }) => !doneThen.has(sameCall({ id: callId, idempotencyKey })))
    .map(({ callId, tool, output }) => ({ callId, tool, args: null, output, completedAt: null }));
  const completed = present.calls
    .filter(
      ({ effect, status, replayOf }) =>
        effect === 'mutate' && status.kind === 'completed' && replayOf === null,
    )
    .filter((call) => call.dispatches.length > 0 && !doneThen.has(sameCall(call)))
    .map(({ id, name, args, result, completedAt }) => ({
      callId: id,
      tool: name,
      args,
      output: result?.content ?? null,
      completedAt,
    }));
  return [...carried, ...completed];
}
