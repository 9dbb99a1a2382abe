/** Measures what the server stores for a session. */
import type { Client } from '@temporalio/client';
import { runsUpTo } from '../../src/temporal/executions.ts';
import { pieceQuery } from '../../src/temporal/past.ts';

/** Bytes of the histories of all its runs and pieces, as the server counts them. Pieces that were merged count, too. */
export interface Stored {
  bytes: number;
  runs: number;
  /** Workflows that are open: the session itself, and pieces. */
  open: number;
}

export async function storedBy(client: Client, workflowId: string): Promise<Stored> {
  const present = await client.workflow.getHandle(workflowId).describe();
  const runs = await runsUpTo(client, workflowId, present.runId);
  const held = runs.map((runId) => ({ workflowId, runId }));
  for await (const piece of client.workflow.list({ query: pieceQuery(workflowId) })) held.push(piece);
  const found: Stored = { bytes: 0, runs: runs.length, open: 0 };
  for (const { workflowId: id, runId } of held) {
    const { raw, status } = await client.workflow.getHandle(id, runId).describe();
    found.bytes += Number(raw.workflowExecutionInfo?.historySizeBytes ?? Number.NaN);
    if (status.name === 'RUNNING') found.open += 1;
  }
  return found;
}
