/** Notices when the database of a dev server no longer answers. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { openConnection } from './probe.ts';

/**
 * An error of SQLite in a stock Temporal CLI. A single cancelled request may get it. But with the SQLite of CLI 1.5.1,
 * all later requests may get it too, until the server is restarted.
 */
const INTERRUPTED = 'interrupted (9)';
const LOOK_MS = 1_000;
const PROBE_MS = 5_000;

/**
 * Calls `broken` once when the server's log shows that error, then a request of ours fails, and then the log shows the
 * error again. Reads the log each second. Does not keep this process alive.
 *
 * @returns a function that ends the watch
 */
export function watchDatabase(
  server: { address: string; namespace: string; logFile: string },
  broken: () => void,
): () => void {
  let read = sizeOf(server.logFile);
  let ended = false;
  let asking = false;
  const says = (): boolean => {
    const size = sizeOf(server.logFile);
    const added = size > read ? textBetween(server.logFile, read, size) : '';
    read = size;
    return added.includes(INTERRUPTED);
  };
  const look = async (): Promise<void> => {
    // The client repeats such a request until its deadline and then hides the error. Only the log shows it.
    if (!says() || (await answers(server)) || !says() || ended) return;
    end();
    broken();
  };
  const timer = setInterval(() => {
    if (asking) return;
    asking = true;
    void look().finally(() => {
      asking = false;
    });
  }, LOOK_MS).unref();
  const end = (): void => {
    ended = true;
    clearInterval(timer);
  };
  return end;
}

async function answers({ address, namespace }: { address: string; namespace: string }): Promise<boolean> {
  try {
    const connection = await openConnection({ address }, namespace, PROBE_MS);
    await connection.close();
    return true;
  } catch {
    return false;
  }
}

function sizeOf(file: string): number {
  return withFile(file, 0, (log) => fstatSync(log).size);
}

function textBetween(file: string, from: number, to: number): string {
  return withFile(file, '', (log) => {
    const buffer = Buffer.alloc(to - from);
    return buffer.toString('utf8', 0, readSync(log, buffer, 0, buffer.length, from));
  });
}

function withFile<T>(file: string, otherwise: T, read: (log: number) => T): T {
  let log: number;
  try {
    log = openSync(file, 'r');
  } catch {
    return otherwise;
  }
  try {
    return read(log);
  } finally {
    closeSync(log);
  }
}
