/** What a person should know before a session goes on from its past. */

import { type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { PerdureError } from '../contract/errors.ts';
import type { SessionState } from '../contract/state.ts';
import { isOpen } from '../session/state.ts';
import { sessionError } from '../temporal/errors.ts';
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

/** The mutations that a running session waits for; one that Temporal has ended waits for none, whatever its state says. */
export async function openMutations(cli: Cli, { sessionId, calls }: SessionState): Promise<string[]> {
  const open = calls.filter((call) => call.effect === 'mutate' && isOpen(call)).map(({ id }) => id);
  if (open.length === 0) return [];
  const found = await described(cli, sessionId);
  return found?.status.name === 'RUNNING' ? open : [];
}

/** Where a session's workers listen: what goes on from it belongs there, unless another queue was typed. */
export async function taskQueueOf(cli: Cli, sessionId: string): Promise<string> {
  if (cli.typedTaskQueue !== undefined) return cli.typedTaskQueue;
  // Of a session that only an archive still has, nobody knows it.
  return (await described(cli, sessionId))?.taskQueue ?? cli.taskQueue;
}

/** What the server says of a session; `null` when it has it no more. */
async function described(cli: Cli, sessionId: string): Promise<WorkflowExecutionDescription | null> {
  const { client } = await cli.connect();
  try {
    return await client.workflow.getHandle(sessionId).describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw sessionError(sessionId, error);
  }
}
