/** The fold of a session's history, held against the live session. */
import type { Client } from '@temporalio/client';
import { expect } from 'vitest';
import { canonicalJson } from '../../src/contract/json.ts';
import { foldHistory } from '../../src/history/index.ts';
import type { JsonObject, Session, SessionState } from '../../src/index.ts';
import { readPages } from '../../src/temporal/index.ts';

/** Folds the history of a session's present run. */
export async function foldOf(client: Client, session: Session, runId?: string): Promise<SessionState> {
  const fold = await foldHistory(
    readPages(client, { workflowId: session.id, ...(runId === undefined ? {} : { runId }) }),
    client.options,
    runId === undefined ? {} : { runId },
  );
  if (fold.state === null) return expect.fail(`no workflow task of ${session.id} has completed`);
  return fold.state;
}

/** Fails unless the fold of a session's history is its live state. Needs a worker; the session may be closed. */
export async function expectFoldEqualsLive(client: Client, session: Session): Promise<SessionState> {
  for (;;) {
    const before = await session.snapshot();
    const folded = await foldOf(client, session, before.runId);
    const after = await session.snapshot();
    // The session went on between the two looks.
    if (text(before) !== text(after)) continue;
    expect(folded).toEqual(after);
    expect(text(folded)).toBe(text(after));
    return after;
  }
}

function text(state: SessionState): string {
  return canonicalJson(state as unknown as JsonObject);
}
