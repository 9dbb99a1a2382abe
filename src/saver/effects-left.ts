import type { Client } from '@temporalio/client';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { parseInput, sessionInputSchema } from '../contract/inputs.ts';
import { leftState, orNull, readStartInput } from '../history/index.ts';
import { type EffectSince, effectsBetween } from './views/effects-since.ts';
import { sessionStateOf } from './views/session-state.ts';

/**
 * The effects that a rewind to a checkpoint has left as they are, those that completed while it was asked for included.
 *
 * @param before - what was listed before it: told where the server has no more to say, for the rewind is made
 */
export async function effectsKept(
  client: Client,
  then: Checkpoint,
  before: EffectSince[],
): Promise<EffectSince[]> {
  return (await effectsLeft(client, then).catch(() => null)) ?? before;
}

/**
 * The effects that a rewind to a checkpoint has left as they are, by what the session was started with anew: the run
 * that it left does nothing any more, while what was listed before may lack what completed until it was sealed.
 *
 * @returns `null` when the session was taken back to elsewhere since, or had no run any more to leave
 */
async function effectsLeft(client: Client, then: Checkpoint): Promise<EffectSince[] | null> {
  const started = parseInput(sessionInputSchema, await readStartInput(client, then.thread_id));
  const origin = started.ok ? started.value.origin : undefined;
  const isIt = origin?.kind === 'rewind' && `${origin.runId}:${origin.eventId}` === then.id;
  if (!isIt || origin.leaves === undefined) return null;
  const left = await orNull(leftState(client, origin));
  return left === null ? null : effectsBetween(sessionStateOf(then), left);
}
