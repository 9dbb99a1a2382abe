/** Ensures one server for each database file. The lock beside the file names the process and its address. */

import { PerdureError } from '../contract/errors.ts';
import { breakLock, createLock, type Holder, isAlive, isHeld, parseHolder, readLock } from './file-lock.ts';
import { openConnection } from './probe.ts';
import { poll } from './wait.ts';

/** A server that serves a database file. */
export interface RunningServer {
  readonly ownerPid: number;
  readonly pid: number;
  readonly address: string;
  readonly uiUrl: string | null;
  readonly namespace: string;
  readonly logFile: string;
}

/** A lock that we hold. */
export interface ServerLock {
  /** Publishes the address for other processes. */
  publish(server: Omit<RunningServer, 'ownerPid'>): Promise<void>;
  /** Releases the lock. Does nothing when the lock is no longer ours. */
  release(): Promise<void>;
}

interface LockRecord extends Omit<RunningServer, 'pid'>, Holder {
  /** Null while the server is being started. */
  readonly pid: number | null;
}

/** How long a dead owner's watchdog has to end the server before we do it. */
const ORPHAN_MS = 3_000;

/** The path of a database file's lock. */
function lockFileOf(dbFile: string): string {
  return `${dbFile}.lock`;
}

/**
 * Takes the lock of a database file, or finds the server that has it.
 *
 * A server whose owner has died is stopped first. So two servers on one kernel never share a file, also across
 * containers.
 *
 * @throws PerdureError `SERVER_UNAVAILABLE` when the holder does not answer and does not exit in time.
 */
export async function acquireServerLock(
  dbFile: string,
  timeoutMs: number,
): Promise<ServerLock | RunningServer> {
  const path = lockFileOf(dbFile);
  const draft = { pid: null, address: '', uiUrl: null, namespace: '', logFile: '' };
  const started = performance.now();
  const outcome = await poll<ServerLock | RunningServer>(async () => {
    const seen = await readLock(path);
    if (seen === null) return (await createLock(path, draft)) ?? undefined;
    const record = parseRecord(seen);
    if (record === null) return breakLock(path, seen);
    const { pid } = record;
    if (!(await isHeld(path, record))) {
      if (pid !== null && isAlive(pid)) {
        if (performance.now() - started < ORPHAN_MS) return undefined;
        // An answer at its address proves that the process id was not reused.
        if (await serves(record)) {
          process.kill(pid, 'SIGKILL');
          return undefined;
        }
      }
      return breakLock(path, seen);
    }
    if (pid === null) return undefined;
    return (await serves(record)) ? { ...record, pid } : undefined;
  }, timeoutMs);
  if (outcome !== undefined) return outcome;
  const holder = parseRecord((await readLock(path)) ?? '');
  throw new PerdureError(
    'SERVER_UNAVAILABLE',
    `${dbFile} is in use by process ${holder?.ownerPid ?? 'unknown'}, whose server${holder?.address ? ` at ${holder.address}` : ''} does not answer. End that process, then try again.`,
    {
      details: {
        dbFile,
        lockFile: path,
        ownerPid: holder?.ownerPid ?? null,
        address: holder?.address || null,
      },
    },
  );
}

/** The server that serves this database file now, or null. Has no side effects. */
export async function findRunningServer(dbFile: string): Promise<RunningServer | null> {
  const path = lockFileOf(dbFile);
  const record = parseRecord((await readLock(path)) ?? '');
  if (record === null || record.pid === null || !(await isHeld(path, record))) return null;
  return (await serves(record)) ? { ...record, pid: record.pid } : null;
}

async function serves(record: { address: string; namespace: string }): Promise<boolean> {
  try {
    const connection = await openConnection({ address: record.address }, record.namespace, 2_000);
    await connection.close();
    return true;
  } catch {
    return false;
  }
}

function parseRecord(text: string): LockRecord | null {
  const holder = parseHolder(text);
  if (holder === null) return null;
  const { pid, address, uiUrl, namespace, logFile } = holder;
  if (
    !(pid === null || typeof pid === 'number') ||
    typeof address !== 'string' ||
    !(uiUrl === null || typeof uiUrl === 'string') ||
    typeof namespace !== 'string' ||
    typeof logFile !== 'string'
  ) {
    return null;
  }
  return { ...holder, pid, address, uiUrl, namespace, logFile };
}
