import type { Client } from '@temporalio/client';
import type { SessionState } from '../contract/state.ts';
import type { ChildEnd } from '../contract/tree.ts';
import { endOf } from '../session/sub-agents.ts';
import { foldSession } from './fold-session.ts';

/** Reads a sub-agent's session, and what it would report if it ended here. */
export async function readChild(
  client: Client,
  sessionId: string,
  runId: string,
): Promise<{ state: SessionState; end: ChildEnd }> {
  const state = await foldSession(client, sessionId, runId);
  return { state, end: endOf(state) };
}
