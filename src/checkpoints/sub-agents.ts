/** Finds the sessions below a session, because they are deleted with it. */
import type { Client } from '@temporalio/client';
import { WORKFLOW } from '../contract/names.ts';
import type { SessionInput } from '../contract/session-input.ts';
import { isBelow } from '../contract/tree.ts';
import { type Execution, findExecution } from '../temporal/executions.ts';
import { readStartInput } from '../temporal/index.ts';
import { quoted, unsearchable } from '../temporal/visibility.ts';

/**
 * The sessions below a session, the deepest first.
 *
 * @param known - ids that visibility may not show yet
 */
export async function findBelow(
  client: Client,
  sessionId: string,
  known: readonly string[],
): Promise<Execution[]> {
  const ids = new Set(known);
  if (unsearchable(sessionId) === null) {
    const query = `WorkflowId STARTS_WITH ${quoted('id', `${sessionId}/`)} AND WorkflowType = '${WORKFLOW.session}'`;
    for await (const { workflowId } of client.workflow.list({ query })) ids.add(workflowId);
  }
  const found: Execution[] = [];
  for (const id of [...ids].sort((a, b) => b.length - a.length)) {
    if (!isBelow(id, sessionId)) continue;
    const session = await findExecution(client, id);
    if (session?.type === WORKFLOW.session && (await isStartedByAgent(client, id))) found.push(session);
  }
  return found;
}

/** Whether an agent started a session. A person may have chosen an id that looks like a sub-agent's. */
async function isStartedByAgent(client: Client, sessionId: string): Promise<boolean> {
  const input = (await readStartInput(client, sessionId).catch(() => null)) as Partial<SessionInput> | null;
  const parent = input?.parent ?? input?.carried?.parent;
  // The input of a rewind does not name the session above: the checkpoint does.
  return parent !== undefined || input?.origin?.kind === 'rewind';
}
