import type { Client } from '@temporalio/client';
import type { SessionState } from '../contract/state.ts';
import { readPages } from '../temporal/read-events.ts';
import { Folder } from './fold.ts';

/**
 * Reads the state of a session's run from its history, without a worker. This is the state after the last completed
 * workflow task or, if no worker has taken the session yet, the state at its start.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION`; Temporal's `ServiceError` when the run is not there.
 */
export async function foldSession(client: Client, workflowId: string, runId: string): Promise<SessionState> {
  const folder = new Folder(client.options, { runId });
  for await (const page of readPages(client, { workflowId, runId })) await folder.take(page);
  await folder.closeTask();
  return folder.result().state ?? folder.start();
}
