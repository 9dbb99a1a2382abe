import type { ToolCall } from '../../contract/calls.ts';
import type { Checkpoint } from '../../contract/checkpoint.ts';
import type { JsonValue } from '../../contract/json.ts';
import type { SessionState } from '../../contract/state.ts';
import { sameCall } from '../../history/index.ts';
import { sessionStateOf } from './session-state.ts';

/** An effect that has happened, or may have, since a checkpoint. */
export interface EffectSince {
  callId: string;
  tool: string;
  /**
   * What an equal call comes to after a rewind: `answered` from the record; `doubtful`: nobody knows what became of it, so
   * a person decides; `repeated`: of a `write`, which says that it may be.
   */
  again: 'answered' | 'doubtful' | 'repeated';
  /** `null` of an effect that an earlier rewind has left behind: only its output is still known. */
  args: JsonValue;
  output: JsonValue;
  completedAt: string | null;
}

/**
 * What has changed the world between two checkpoints of a session, or may have: what a rewind to the first does not undo.
 * Look at it before `Sessions.rewind`.
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
    .filter(({ idempotencyKey }) => !carriedThen.has(idempotencyKey))
    .filter(({ callId, idempotencyKey }) => !doneThen.has(sameCall({ id: callId, idempotencyKey })))
    .map(({ callId, tool, output, doubt }): EffectSince => {
      const again = doubt === undefined ? 'answered' : 'doubtful';
      return { callId, tool, again, args: null, output, completedAt: null };
    });
  const called = present.calls
    .filter((call) => call.replayOf === null && call.dispatches.length > 0 && !doneThen.has(sameCall(call)))
    .flatMap((call): EffectSince[] => {
      const again = onRepeat(call);
      const { id: callId, name: tool, args, result, completedAt } = call;
      return again === null
        ? []
        : [{ callId, tool, again, args, output: result?.content ?? null, completedAt }];
    });
  return [...carried, ...called];
}

/** `null` of a call that has changed nothing. */
function onRepeat({ effect, status }: ToolCall): EffectSince['again'] | null {
  if (effect === 'read') return null;
  if (status.kind === 'completed') return effect === 'mutate' ? 'answered' : 'repeated';
  return effect === 'mutate' && status.kind === 'failed' && !status.certain ? 'doubtful' : null;
}
