import type { Client } from '@temporalio/client';
import type { PoolAmount } from '../contract/pool.ts';
import { poolSpent } from '../session/pool.ts';
import { leftState } from './left-state.ts';
import { spentAtWorst } from './what-happened.ts';

/** What a session that was ended from outside has spent from its pool. Lost requests count in full, as in a rewind. */
export async function spentOfEnded(client: Client, sessionId: string, runId: string): Promise<PoolAmount> {
  const state = await leftState(client, { sessionId, runId });
  return poolSpent(spentAtWorst(state), state.pool?.before);
}
