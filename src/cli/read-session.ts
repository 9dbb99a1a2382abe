/** A session's state, from a worker or, when there is none, from its history. */
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { isPerdureError, isUnanswered, PerdureError } from '../contract/errors.ts';
import { WORKFLOW } from '../contract/names.ts';
import type { SessionState } from '../contract/state.ts';
import { foldSession } from '../history/index.ts';
import { sessionError } from '../temporal/errors.ts';
import { isPolled } from '../temporal/pollers.ts';
import type { Cli } from './cli.ts';

/** A state and where it was read. */
export interface SessionReading {
  state: SessionState;
  /** `history`: no worker was asked; what has not been taken by one is not in the state. */
  source: 'worker' | 'history';
  /** Temporal's own word for the run: `running`, `completed`, `terminated`, … */
  run: string;
}

/** How long a worker may take to answer before the history is read instead. */
const ANSWER_MS = 5_000;

/**
 * Reads a session: by a query when a worker is there, else by folding the history, which gives the same state
 * and also works when the session is closed.
 *
 * @throws PerdureError `SESSION_NOT_FOUND`, `SERVER_UNAVAILABLE`, `CHECKPOINT_CORRUPTION`
 */
export async function readSession(cli: Cli, id: string): Promise<SessionReading> {
  const session = await cli.session(id);
  const { client } = await cli.connect();
  const execution = await describe(client, id);
  const run = execution.status.name.toLowerCase();
  if (run === 'running' && (await isPolled(client, execution.taskQueue))) {
    try {
      const state = await client.connection.withAbortSignal(AbortSignal.timeout(ANSWER_MS), () =>
        session.snapshot(),
      );
      return { state, source: 'worker', run };
    } catch (error) {
      const readable = isUnanswered(error) || isPerdureError(error, 'TOO_LARGE');
      if (!readable) throw error;
    }
  }
  return { state: await foldSession(client, id, execution.runId), source: 'history', run };
}

async function describe(client: Client, id: string): Promise<WorkflowExecutionDescription> {
  let execution: WorkflowExecutionDescription;
  try {
    execution = await client.workflow.getHandle(id).describe();
  } catch (error) {
    throw sessionError(id, error);
  }
  if (execution.type === WORKFLOW.session) return execution;
  throw new PerdureError('SESSION_NOT_FOUND', `${id} is a workflow of type ${execution.type}, not a session`);
}
