import type { Client } from '@temporalio/client';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { parseInput, sessionInputSchema } from '../contract/inputs.ts';
import type { Origin } from '../contract/origin.ts';
import type { SessionState } from '../contract/state.ts';
import { leftState } from '../history/index.ts';
import { orNull, readStartInput } from '../temporal/index.ts';
import { type EffectSince, effectsBetween } from './effects-since.ts';
import { sessionStateOf } from './session-state.ts';

/**
 * The effects since a checkpoint, as a rewind to it would leave them: those included that only a run knows which an
 * earlier rewind has left.
 *
 * @param now - the latest checkpoint
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when one is not a session's
 */
export function effectsAfter(client: Client, then: Checkpoint, now: Checkpoint): Promise<EffectSince[]> {
  return effectsOver(client, sessionStateOf(then), sessionStateOf(now));
}

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
  return left === null ? null : effectsOver(client, sessionStateOf(then), left);
}

async function effectsOver(client: Client, past: SessionState, last: SessionState): Promise<EffectSince[]> {
  // One that has not begun yet has what that has which it goes on from.
  const present = last.loading === null ? last : ((await before(client, last)) ?? last);
  const left: SessionState[] = [];
  let run: SessionState | null = present;
  while (run !== null && run.runId !== past.runId) {
    run = await before(client, run);
    if (run !== null) left.unshift(run);
  }
  const branch = run === null ? await leftState(client, past).catch(() => null) : null;
  return effectsBetween(past, present, left, branch);
}

/** The last state of the run that one has left by a rewind. What cannot be read keeps nobody from going back. */
async function before(client: Client, { origin }: { origin: Origin | null }): Promise<SessionState | null> {
  return origin?.kind === 'rewind' ? leftState(client, origin).catch(() => null) : null;
}
