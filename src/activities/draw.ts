/** Draws money for a session from a pool, and gives money back. */
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { DrawInput, DrawResult } from '../contract/activities.ts';
import { isPerdureError } from '../contract/errors.ts';
import {
  type DrawAnswer,
  type DrawRequest,
  type HeldBy,
  POOL_UPDATE,
  type PoolClosedInput,
} from '../contract/pool.ts';
import { poolWorkflowId } from '../contract/workflow-ids.ts';
import { spentOfEnded } from '../history/index.ts';
import { findExecution } from '../temporal/executions.ts';
import { updatePool } from '../temporal/pool-update.ts';
import { beating } from './heartbeats.ts';

/** How long the pool may take to answer, in milliseconds. Then Temporal retries, safely: the request has a number. */
const ANSWER_MS = 10_000;

/**
 * The `draw` activity: sends one update to the pool. If the pool refuses because other sessions hold unspent money, the
 * activity reports those that have ended to the pool, which frees their money, and asks again.
 */
export async function runDraw({ pool, ...input }: DrawInput): Promise<DrawResult> {
  return beating(async ({ client, info }) => {
    const { taskQueue } = info;
    const handle = client.workflow.getHandle(poolWorkflowId(pool));
    const within = <T>(ask: () => Promise<T>): Promise<T> => client.withDeadline(Date.now() + ANSWER_MS, ask);
    const tell = <T>(name: string, input: object): Promise<T> =>
      within(() => handle.executeUpdate<T, [object]>(name, { args: [input] }));
    // A request with caps creates the pool if there is none.
    const draw = (request: DrawRequest): Promise<DrawAnswer> =>
      request.caps === undefined
        ? tell(POOL_UPDATE.draw, request)
        : within(() => updatePool(client, { pool, taskQueue, name: POOL_UPDATE.draw, input: request }));
    const request: DrawRequest = { ...input, sessionId: info.workflowExecution?.workflowId ?? '' };
    try {
      const answer = await draw(request);
      if (answer.kind !== 'refused' || answer.holders.length === 0) return answer;
      const ended = await endedOf(client, answer.holders);
      if (ended.length === 0) return answer;
      for (const one of ended) await tell(POOL_UPDATE.closed, one);
      return await draw(request);
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      return {
        kind: 'unset',
        message: `there is no pool ${pool}: nobody has set its caps, or it was ended. Set them: perdure pool ${pool} --usd 10`,
      };
    }
  });
}

/** The sessions that no longer run, with what they have spent. */
async function endedOf(client: Client, holders: readonly HeldBy[]): Promise<PoolClosedInput[]> {
  const looks = holders.map(async (holder): Promise<PoolClosedInput[]> => {
    const execution = await findExecution(client, holder.sessionId);
    if (execution?.running === true) return [];
    if (execution === null) return [holder];
    try {
      return [{ ...holder, spent: await spentOfEnded(client, holder.sessionId, execution.runId) }];
    } catch (error) {
      // If nobody can read the history, the money stays held.
      if (isPerdureError(error, 'CHECKPOINT_CORRUPTION')) return [];
      throw error;
    }
  });
  return (await Promise.all(looks)).flat();
}
