import type { Client } from '@temporalio/client';
import type { ArchivedOrigin } from '../contract/loaded.ts';
import type { Origin } from '../contract/origin.ts';
import type { SessionState } from '../contract/state.ts';
import { loadParts } from '../temporal/content.ts';
import { foldSession } from './fold-session.ts';

/**
 * The last state of the run that a rewind leaves. If that run had not loaded its past yet: the last state before it.
 */
export async function leftState(
  client: Client,
  { sessionId, runId, leaves = runId }: Pick<Origin, 'sessionId' | 'runId' | 'leaves'>,
): Promise<SessionState> {
  const last = await foldSession(client, sessionId, leaves);
  if (last.loading === null || last.origin?.kind !== 'rewind') return last;
  const { archived } = last.origin;
  const read =
    archived === undefined ? null : (JSON.parse(await loadParts(client, archived)) as ArchivedOrigin);
  return read?.last ?? leftState(client, last.origin);
}
