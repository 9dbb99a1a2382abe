/** Finds and removes values that no session refers to any more. */
import type { Client } from '@temporalio/client';
import type { ValueStore } from '../contract/values.ts';
import { findExecution } from '../temporal/executions.ts';
import { Values } from './values.ts';

export interface PruneOptions {
  /** In milliseconds. Younger values stay, because their session may not have started yet. */
  olderThanMs: number;
  /** Whether to remove values. Otherwise they are only counted. */
  remove: boolean;
  /** Whether a session that the server no longer has is kept elsewhere, such as in an archive. */
  isKept?: (sessionId: string) => Promise<boolean>;
}

export interface Counted {
  values: number;
  bytes: number;
}

/** What a store holds. */
export interface PruneReport {
  /** A session refers to these values. */
  referred: Counted;
  /** Nobody refers to these values, but they are young. */
  young: Counted;
  /** Sessions of other namespaces refer to these values. */
  foreign: Counted;
  /** Nobody refers to these values. With `remove`, they were removed. */
  unreferred: Counted;
}

/** Counts the values of a store by who refers to them, and removes those that nobody refers to. */
export async function pruneValues(
  client: Client,
  store: ValueStore,
  { olderThanMs, remove, isKept }: PruneOptions,
): Promise<PruneReport> {
  const values = new Values(store, client);
  const known = new Map<string, boolean>();
  const isThere = async (sessionId: string): Promise<boolean> => {
    const found =
      known.get(sessionId) ??
      ((await findExecution(client, sessionId)) !== null || (await isKept?.(sessionId)) === true);
    known.set(sessionId, found);
    return found;
  };
  const none = (): Counted => ({ values: 0, bytes: 0 });
  const report: PruneReport = { referred: none(), young: none(), foreign: none(), unreferred: none() };
  const before = Date.now() - olderThanMs;
  for await (const { digest, bytes, storedAt, owners, sessions } of values.list()) {
    const gone: string[] = [];
    for (const session of sessions) if (!(await isThere(session))) gone.push(session);
    const kind =
      gone.length < sessions.length
        ? 'referred'
        : owners.length > sessions.length
          ? 'foreign'
          : storedAt > before
            ? 'young'
            : 'unreferred';
    report[kind].values += 1;
    report[kind].bytes += bytes;
    if (!remove || storedAt > before) continue;
    for (const session of gone) await values.release(digest, session);
    if (owners.length === 0) await values.release(digest, null);
  }
  return report;
}
