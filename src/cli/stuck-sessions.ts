/** Sessions whose workflow task does not complete, for `perdure doctor`. */
import type { Client } from '@temporalio/client';
import { whyUnanswered } from '../temporal/unanswered.ts';
import { runningSessions } from '../temporal/visibility.ts';

/** The most sessions to check, newest first. */
const LOOKED_AT = 100;

export interface StuckSessions {
  looked: number;
  stuck: { id: string; code: string; message: string }[];
}

/** Checks the newest running sessions of a task queue. A task in its first attempt is not a problem yet. */
export async function stuckSessions(client: Client, taskQueue: string): Promise<StuckSessions> {
  const query = runningSessions(`TaskQueue = '${taskQueue}'`);
  const found: StuckSessions = { looked: 0, stuck: [] };
  for await (const { workflowId } of client.workflow.list({ query, pageSize: LOOKED_AT })) {
    if (found.looked === LOOKED_AT) break;
    found.looked += 1;
    const { raw } = await client.workflow.getHandle(workflowId).describe();
    if ((raw.pendingWorkflowTask?.attempt ?? 1) < 2) continue;
    const { code, message } = await whyUnanswered(client, {
      workflowId,
      what: `session ${workflowId}`,
      askedMs: Date.now(),
    });
    found.stuck.push({ id: workflowId, code, message });
  }
  return found;
}
