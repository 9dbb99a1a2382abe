import type { Client } from '@temporalio/client';
import type { Checkpoint } from '../contract/checkpoint.ts';
import type { JsonObject } from '../contract/json.ts';
import { wholeState } from '../temporal/past.ts';
import { sessionStateOf } from './session-state.ts';

/**
 * Returns a checkpoint with the messages, tool calls and pauses of all runs of its session.
 *
 * A saver returns a session's state as the session has it: with the messages and calls of its present run, and with
 * `past`, which says where the earlier ones are stored. So a checkpoint costs the same to read at any age of the
 * session. This function adds the earlier ones and returns a state without `past`. Checkpoints of other threads are
 * returned as they are.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` when the checkpoint has an unknown version, or when the stored messages
 * are gone because the session was deleted
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { TemporalSaver, wholeCheckpoint } from 'perdure';
 * import { runCheckpoint } from 'perdure/records';
 *
 * const client = new Client();
 * const latest = await new TemporalSaver(client).get('ticket-7');
 * if (latest !== null) console.log(runCheckpoint(await wholeCheckpoint(client, latest)).payload);
 * ```
 */
export async function wholeCheckpoint(client: Client, checkpoint: Checkpoint): Promise<Checkpoint> {
  if (checkpoint.metadata['source'] !== 'session') return checkpoint;
  const state = await wholeState(client, sessionStateOf(checkpoint));
  return { ...checkpoint, state: state as unknown as JsonObject };
}
