import type { Client } from '@temporalio/client';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { parseInput } from '../contract/inputs.ts';
import type { Origin } from '../contract/origin.ts';
import { sessionInputSchema } from '../contract/session-input.ts';
import type { SessionState } from '../contract/state.ts';
import type { UndoPlan } from '../contract/undo.ts';
import { leftState, stepsSince } from '../history/index.ts';
import { planOf } from '../session/undo-plan.ts';
import { orNull, readStartInput } from '../temporal/index.ts';
import { wholeState } from '../temporal/past.ts';
import { type EffectSince, effectsBetween } from './effects-since.ts';
import { sessionStateOf } from './session-state.ts';

/**
 * The effects that have happened, or may have, since a checkpoint of a session. A rewind to the checkpoint does not
 * undo them, so look at them before `Sessions.rewind`. The list includes effects of runs that earlier rewinds have
 * abandoned, as far as the server still has the history of these runs.
 *
 * @param then - the checkpoint to go back to
 * @param now - the latest checkpoint
 * @returns one entry for each effect, and what an equal call after the rewind would do (`again`)
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when a checkpoint is not a session's
 *
 * @example
 * ```ts
 * import type { Client } from '@temporalio/client';
 * import { effectsSince, TemporalSaver } from 'perdure';
 *
 * export async function lookBack(client: Client, sessionId: string, checkpointId: string): Promise<void> {
 *   const saver = new TemporalSaver(client);
 *   const then = await saver.get(sessionId, { checkpointId });
 *   const now = await saver.get(sessionId);
 *   if (then === null || now === null) return;
 *   for (const { tool, args, again } of await effectsSince(client, then, now)) console.log(tool, args, again);
 * }
 * ```
 */
export function effectsSince(client: Client, then: Checkpoint, now: Checkpoint): Promise<EffectSince[]> {
  return effectsOver(client, sessionStateOf(then), sessionStateOf(now));
}

/**
 * What a rewind with `undo` would do: the effects since a checkpoint, the last one first, and whether their tools can
 * undo them. The list leaves out calls that were open at the checkpoint: they go on. To approve the list, pass its
 * digest to `Sessions.rewind`.
 *
 * @throws PerdureError as {@link effectsSince}
 */
export async function undoPlanSince(client: Client, then: Checkpoint, now: Checkpoint): Promise<UndoPlan> {
  const [past, last] = [sessionStateOf(then), sessionStateOf(now)];
  const isSame = last.runId === past.runId;
  const branch = isSame ? null : await leftState(client, past).catch(() => null);
  const whole = (state: SessionState): Promise<SessionState> => wholeState(client, state);
  return planOf(stepsSince(await whole(past), await whole(last), branch && (await whole(branch))));
}

/**
 * The effects that a rewind did not undo, including effects that completed while the rewind was requested.
 *
 * @param before - the effects listed before the rewind; they are returned if the server cannot tell more
 */
export async function effectsKept(
  client: Client,
  then: Checkpoint,
  before: EffectSince[],
): Promise<EffectSince[]> {
  return (await effectsLeft(client, then).catch(() => null)) ?? before;
}

/**
 * The effects that a rewind did not undo, read through the input of the new run. The list from before the rewind may
 * lack effects that completed until the abandoned run was sealed. After that, the run does nothing more.
 *
 * @returns `null` when the session was rewound elsewhere since, or when there was no run to leave
 */
async function effectsLeft(client: Client, then: Checkpoint): Promise<EffectSince[] | null> {
  const started = parseInput(sessionInputSchema, await readStartInput(client, then.thread_id));
  const origin = started.ok ? started.value.origin : undefined;
  const isIt = origin?.kind === 'rewind' && `${origin.runId}:${origin.eventId}` === then.id;
  if (!isIt || origin.leaves === undefined) return null;
  const left = await orNull(leftState(client, origin));
  return left === null ? null : effectsOver(client, sessionStateOf(then), left);
}

async function effectsOver(client: Client, past: SessionState, last: SessionState): Promise<EffectSince[]> {
  // A rewound run that has not loaded its past yet has the effects of the run before it.
  const present = last.loading === null ? last : ((await before(client, last)) ?? last);
  const left: SessionState[] = [];
  let run: SessionState | null = present;
  while (run !== null && run.runId !== past.runId) {
    run = await before(client, run);
    if (run !== null) left.unshift(run);
  }
  const branch = run === null ? await leftState(client, past).catch(() => null) : null;
  const whole = (state: SessionState): Promise<SessionState> => wholeState(client, state);
  const runs: SessionState[] = [];
  for (const state of left) runs.push(await whole(state));
  return effectsBetween(await whole(past), await whole(present), runs, branch && (await whole(branch)));
}

/** The last state of the run that a rewind has left, or `null`. An unreadable run must not block a rewind. */
async function before(client: Client, { origin }: { origin: Origin | null }): Promise<SessionState | null> {
  return origin?.kind === 'rewind' ? leftState(client, origin).catch(() => null) : null;
}
