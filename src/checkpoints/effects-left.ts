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
 * The effects since a checkpoint that a rewind to it would leave. Includes effects that only an abandoned run of an
 * earlier rewind knows.
 *
 * @param now - the latest checkpoint
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when one is not a session's
 */
export function effectsAfter(client: Client, then: Checkpoint, now: Checkpoint): Promise<EffectSince[]> {
  return effectsOver(client, sessionStateOf(then), sessionStateOf(now));
}

/**
 * The effects that a rewind has left, including those that completed while it was requested.
 *
 * @param before - the effects listed before the rewind, returned when the server no longer knows more
 */
export async function effectsKept(
  client: Client,
  then: Checkpoint,
  before: EffectSince[],
): Promise<EffectSince[]> {
  return (await effectsLeft(client, then).catch(() => null)) ?? before;
}

/**
 * The effects that a rewind has left, read from the input of the new run. The abandoned run does nothing any more, but the
 * list from before the rewind may lack what completed until that run was sealed.
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

/** The last state of the run that a rewind has left, if it can be read. An unreadable run must not block a rewind. */
async function before(client: Client, { origin }: { origin: Origin | null }): Promise<SessionState | null> {
  return origin?.kind === 'rewind' ? leftState(client, origin).catch(() => null) : null;
}
