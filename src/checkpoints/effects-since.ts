import { isFinal, type ToolCall } from '../contract/calls.ts';
import type { JsonValue } from '../contract/json.ts';
import type { SessionState } from '../contract/state.ts';
import { sameCall } from '../history/index.ts';
import { isOpen, wasStopped } from '../session/state.ts';

/** An effect that has happened, or may have happened, since a checkpoint. */
export interface EffectSince {
  callId: string;
  tool: string;
  /**
   * What happens to an equal call after a rewind. `answered`: it gets the recorded result. `doubtful`: nobody knows
   * whether the effect happened, so a person decides. `repeated`: it runs again, because it is idempotent. `undone`: it
   * runs again, because the effect was undone.
   */
  again: 'answered' | 'doubtful' | 'repeated' | 'undone';
  /** `null` for an effect from before an earlier rewind: only its output is still known. */
  args: JsonValue;
  output: JsonValue;
  /** ISO 8601. `null` if it is not known, or the call has not ended. */
  completedAt: string | null;
}

/**
 * The effects between two states.
 *
 * @param past - the first state
 * @param present - the last state
 * @param left - the last states of the runs in between that rewinds have left, the oldest first. Only these runs know
 *   their own idempotent calls
 * @param branch - the last state of the first state's run, if no later run continues from it because of a reset
 */
export function effectsBetween(
  past: SessionState,
  present: SessionState,
  left: readonly SessionState[] = [],
  branch: SessionState | null = null,
): EffectSince[] {
  const endedThen = new Set(past.calls.filter(isFinal).map(sameCall));
  const undoneThen = new Set(past.calls.flatMap((call) => (call.compensatedBy ? [sameCall(call)] : [])));
  const openThen = new Set(past.calls.filter(isOpen).map(sameCall));
  const carriedThen = new Set(past.carried.map(({ idempotencyKey }) => idempotencyKey));
  // After a rewind, the effect of a call that was open at the checkpoint is both carried and in the call itself.
  const since = new Map<string, EffectSince>();
  const take = (key: string, effect: EffectSince): void => {
    // If one branch knows the outcome, it does not matter that another was abandoned before it knew.
    const before = since.get(key)?.again;
    if (before === undefined || (effect.again !== 'doubtful' && before !== 'undone')) since.set(key, effect);
  };
  const carried = [...(branch?.carried ?? []), ...present.carried];
  for (const { callId, tool, idempotencyKey, output, doubt, undone, compensates } of carried) {
    if (compensates !== undefined && doubt === undefined) continue;
    const key = sameCall({ id: callId, idempotencyKey });
    if (carriedThen.has(idempotencyKey) || (endedThen.has(key) && undone !== true)) continue;
    const known = undone === true ? 'undone' : 'answered';
    const again = doubt === undefined ? known : 'doubtful';
    take(key, { callId, tool, again, args: null, output, completedAt: null });
  }
  const idempotent = left.flatMap(({ calls }) => calls.filter(({ effect }) => effect === 'idempotent'));
  for (const call of [...(branch?.calls ?? []), ...idempotent, ...present.calls]) {
    const key = sameCall(call);
    const ended = call.compensatedBy === undefined ? endedThen : undoneThen;
    const known = ended.has(key) || (isOpen(call) && openThen.has(key));
    const again = known || call.replayOf !== null || call.dispatches.length === 0 ? null : onRepeat(call);
    if (again === null) continue;
    const { id: callId, name: tool, args, result, completedAt } = call;
    take(key, { callId, tool, again, args, output: result?.content ?? null, completedAt });
  }
  return [...since.values()];
}

/** The effect of a call, or `null` when it has changed nothing. */
function onRepeat(call: ToolCall): EffectSince['again'] | null {
  const { effect, status, compensates, compensatedBy } = call;
  const done = status.kind === 'completed';
  if (compensatedBy !== undefined) return 'undone';
  if (compensates !== undefined && done) return null;
  const doubtful = isOpen(call) || wasStopped(call) || (status.kind === 'failed' && !status.certain);
  if (effect === 'read' || !(done || doubtful)) return null;
  if (effect === 'idempotent') return 'repeated';
  return done ? 'answered' : 'doubtful';
}
