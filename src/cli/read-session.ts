/** A session's state, from a worker or, when there is none, from its history. */
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow/index.js';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { sessionError } from '../client/errors.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { parseInput, sessionInputSchema } from '../contract/inputs.ts';
import { WORKFLOW } from '../contract/names.ts';
import type { SessionState } from '../contract/state.ts';
import { foldHistory, readEvents } from '../history/index.ts';
import { initialState } from '../session/initial.ts';
import type { Cli } from './cli.ts';
import { isPolled } from './pollers.ts';

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
      const readable = isPerdureError(error, 'NO_WORKER') || isPerdureError(error, 'TOO_LARGE');
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
  throw new PerdureError(
    'SESSION_NOT_FOUND',
    `${id} is a workflow of type ${execution.type}, not a session. List the sessions: perdure ls`,
  );
}

async function foldSession(client: Client, workflowId: string, runId: string): Promise<SessionState> {
  const converter = client.options.loadedDataConverter;
  const events = readEvents(client, { workflowId, runId });
  const { state } = await foldHistory(events, converter, { runId });
  return state ?? (await untouched(client, workflowId, runId));
}

/** A session that no worker has taken yet: what it was started with. */
async function untouched(client: Client, workflowId: string, runId: string): Promise<SessionState> {
  for await (const event of readEvents(client, { workflowId, runId })) {
    const payloads = event.workflowExecutionStartedEventAttributes?.input?.payloads;
    const input: unknown = payloads
      ? await decodeFromPayloadsAtIndex(client.options.loadedDataConverter, 0, payloads)
      : undefined;
    const parsed = parseInput(sessionInputSchema, input);
    if (!parsed.ok) break;
    const moment = { now: tsToMs(event.eventTime), historyEvents: 0, historyBytes: 0 };
    return initialState({ sessionId: workflowId, runId }, parsed.value, moment);
  }
  throw new PerdureError('CHECKPOINT_CORRUPTION', `The input of ${workflowId} is not a session's.`);
}
