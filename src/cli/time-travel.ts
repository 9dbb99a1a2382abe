/** What a person should know before a session goes on from its past. */

import { WorkflowNotFoundError } from '@temporalio/client';
import { sessionError } from '../client/errors.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';
import { isOpen } from '../session/state.ts';
import type { Cli } from './cli.ts';
import { sessionStateOf } from './read-checkpoint.ts';

/** The state of a checkpoint that a session can go on from. @throws PerdureError `INVALID_ARGUMENT` of another thread's */
export function origin(checkpoint: Checkpoint): SessionState {
  const state = sessionStateOf(checkpoint);
  if (state !== null) return state;
  throw new PerdureError(
    'INVALID_ARGUMENT',
    `session: ${checkpoint.thread_id} is a thread, not a session: there is no agent that could go on from it`,
  );
}

/** The mutations of which nobody knows yet what becomes of them. */
export function openMutations(state: SessionState): string[] {
  if (state.status.kind !== 'active') return [];
  return state.calls.filter((call) => call.effect === 'mutate' && isOpen(call)).map(({ id }) => id);
}

/** Where a session's workers listen: what goes on from it belongs there, unless another queue was typed. */
export async function taskQueueOf(cli: Cli, sessionId: string): Promise<string> {
  if (cli.typedTaskQueue !== undefined) return cli.typedTaskQueue;
  const { client } = await cli.connect();
  try {
    return (await client.workflow.getHandle(sessionId).describe()).taskQueue;
  } catch (error) {
    // Of a session that only an archive still has, nobody knows it.
    if (error instanceof WorkflowNotFoundError) return cli.taskQueue;
    throw sessionError(sessionId, error);
  }
}
