/** Checks before a session continues from its past. */

import { type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';
import { isOpen } from '../session/state.ts';
import { sessionError } from '../temporal/errors.ts';
import type { Cli } from './cli.ts';
import { sessionStateOf } from './read-checkpoint.ts';

/**
 * The state of a checkpoint to continue from.
 *
 * @throws PerdureError `INVALID_ARGUMENT` for the checkpoint of a thread
 */
export function origin(checkpoint: Checkpoint): SessionState {
  const state = sessionStateOf(checkpoint);
  if (state !== null) return state;
  throw new PerdureError(
    'INVALID_ARGUMENT',
    `session: ${checkpoint.thread_id} is a thread. Only a session can be forked or rewound`,
  );
}

/** The open mutations of a session. An ended run has none, whatever its state says. */
export async function openMutations(cli: Cli, { sessionId, calls }: SessionState): Promise<string[]> {
  const open = calls.filter((call) => call.effect === 'mutate' && isOpen(call)).map(({ id }) => id);
  if (open.length === 0) return [];
  const found = await described(cli, sessionId);
  return found?.status.name === 'RUNNING' ? open : [];
}

/** The task queue of a session, unless another one was typed. */
export async function taskQueueOf(cli: Cli, sessionId: string): Promise<string> {
  if (cli.typedTaskQueue !== undefined) return cli.typedTaskQueue;
  // Nobody knows the queue of a session that only an archive has.
  return (await described(cli, sessionId))?.taskQueue ?? cli.taskQueue;
}

/** The server's description of a session, or `null`. */
async function described(cli: Cli, sessionId: string): Promise<WorkflowExecutionDescription | null> {
  const { client } = await cli.connect();
  try {
    return await client.workflow.getHandle(sessionId).describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw sessionError(sessionId, error);
  }
}
