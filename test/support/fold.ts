/** Compares the fold of a session's history with the live session. */
import type { Client } from '@temporalio/client';
import { expect } from 'vitest';
import { canonicalJson } from '../../src/contract/json.ts';
import { foldHistory } from '../../src/history/index.ts';
import type { JsonObject, Session, SessionState } from '../../src/index.ts';
import { readPages } from '../../src/temporal/index.ts';
import { polled } from './polled.ts';

/**
 * Folds the history of a session's present run, once its first workflow task has completed: the server delays a run
 * that follows a run of less than a second.
 */
export async function foldOf(client: Client, session: Session, runId?: string): Promise<SessionState> {
  const run = runId === undefined ? {} : { runId };
  const ofRun = { workflowId: session.id, ...run };
  let folded: SessionState | null = null;
  await polled(
    async () => {
      folded = (await foldHistory(readPages(client, ofRun), client.options, run)).state;
      return folded !== null;
    },
    () => `no workflow task of ${session.id} has completed`,
  );
  return folded ?? expect.fail('no state');
}

/** Fails unless the fold of a session's history is its live state. Needs a worker; the session may be closed. */
export async function expectFoldEqualsLive(client: Client, session: Session): Promise<SessionState> {
  for (;;) {
    const before = await session.snapshot();
    const folded = await foldOf(client, session, before.runId);
    const after = await session.snapshot();
    // The session has changed between the two reads.
    if (text(before) !== text(after)) continue;
    expect(folded).toEqual(after);
    expect(text(folded)).toBe(text(after));
    return after;
  }
}

function text(state: SessionState): string {
  return canonicalJson(state as unknown as JsonObject);
}
