import type { Client } from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import { parseInput, sessionInputSchema } from '../contract/inputs.ts';
import type { SessionState } from '../contract/state.ts';
import { initialState } from '../session/initial.ts';
import { firstValue } from '../temporal/payloads.ts';
import { readPages, readStart } from '../temporal/read-events.ts';
import { tsToMs } from '../temporal/sdk-time.ts';
import { foldHistory } from './fold.ts';

/**
 * Reads the state of a session's run from its history, without a worker: the state after the last completed workflow
 * task, or, when no worker has taken the session yet, the state at its start.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION`; Temporal's `ServiceError` when the run is not there.
 */
export async function foldSession(client: Client, workflowId: string, runId: string): Promise<SessionState> {
  const { loadedDataConverter } = client.options;
  const pages = readPages(client, { workflowId, runId });
  const { state } = await foldHistory(pages, loadedDataConverter, { runId });
  return state ?? (await untouched(client, workflowId, runId));
}

async function untouched(client: Client, workflowId: string, runId: string): Promise<SessionState> {
  const start = await readStart(client, { workflowId, runId });
  const { input: payloads, firstExecutionRunId } = start?.workflowExecutionStartedEventAttributes ?? {};
  const parsed = parseInput(
    sessionInputSchema,
    await firstValue(client.options.loadedDataConverter, payloads),
  );
  if (!parsed.ok)
    throw new PerdureError('CHECKPOINT_CORRUPTION', `The input of ${workflowId} is not a session's.`);
  const moment = { now: tsToMs(start?.eventTime), historyEvents: 0, historyBytes: 0 };
  const identity = { sessionId: workflowId, runId, firstRunId: firstExecutionRunId ?? '' };
  return initialState(identity, parsed.value, moment);
}
