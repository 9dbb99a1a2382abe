/** Starts the Temporal dev server, or uses the one that runs. */

import { access, chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { messageOf, PerdureError } from '../contract/errors.ts';
import { OwnedServer } from './owned-server.ts';
import { settle } from './probe.ts';
import { acquireServerLock, findRunningServer, type RunningServer } from './server-lock.ts';
import { DEFAULT_START_MS, type ServerHandle, type StartServerOptions } from './server-options.ts';
import { findTemporalBinary } from './temporal-binary.ts';

const DEFAULT_DIR = '.perdure';

/**
 * Starts a Temporal dev server, or uses the one that already serves the same database file.
 *
 * Resolves when the server answers for its namespace and knows the search attributes. The server stops when
 * this process ends for any reason. It does not keep this process alive.
 *
 * @throws PerdureError `SERVER_UNAVAILABLE` when there is no binary, when the server ends while starting (with
 * the end of its log), when it does not answer in time, or when a fixed port is taken.
 */
export async function startServer(options: StartServerOptions = {}): Promise<ServerHandle> {
  if (options.inMemory) return new OwnedServer(options, await binaryFor(options), null).begin();
  const dbFile = dbFileOf(options);
  await prepareDirectory(resolve(options.dir ?? DEFAULT_DIR), dbFile);
  const running = await findRunningServer(dbFile);
  if (running) return reuse(running, options);
  // Before taking the lock, so that other processes need not wait for a build.
  const binary = await binaryFor(options);
  const holder = await acquireServerLock(dbFile, options.startTimeoutMs ?? DEFAULT_START_MS);
  if ('address' in holder) return reuse(holder, options);
  return new OwnedServer(options, binary, { dbFile, lock: holder }).begin();
}

/** The server that serves this directory's database file now, started by this or another process, or null. */
export async function findServer(
  options: Pick<StartServerOptions, 'dir' | 'dbFilename' | 'namespace' | 'searchAttributes'> = {},
): Promise<ServerHandle | null> {
  const found = await findRunningServer(dbFileOf(options));
  return found && reuse(found, options);
}

async function binaryFor({ binary, env, onProgress }: StartServerOptions): Promise<string> {
  return (
    binary ?? (await findTemporalBinary({ ...(env && { env }), ...(onProgress && { onProgress }) })).path
  );
}

function dbFileOf(options: Pick<StartServerOptions, 'dir' | 'dbFilename'>): string {
  return resolve(options.dbFilename ?? join(options.dir ?? DEFAULT_DIR, 'temporal.db'));
}

async function reuse(server: RunningServer, options: StartServerOptions): Promise<ServerHandle> {
  const namespace = options.namespace ?? server.namespace;
  try {
    await settle(server.address, namespace, options.searchAttributes);
  } catch (cause) {
    throw new PerdureError(
      'SERVER_UNAVAILABLE',
      `The server of process ${server.ownerPid} at ${server.address} does not serve namespace ${namespace}: ${messageOf(cause)}. Stop it, then try again.`,
      { details: { address: server.address, namespace, ownerPid: server.ownerPid }, cause },
    );
  }
  const refuse = async (): Promise<never> => {
    throw new PerdureError(
      'CONFLICT',
      `The server at ${server.address} belongs to process ${server.ownerPid}.`,
      {
        details: { address: server.address, ownerPid: server.ownerPid },
      },
    );
  };
  const { address, uiUrl, pid, logFile } = server;
  return {
    address,
    uiUrl,
    namespace,
    pid,
    logFile,
    owned: false,
    ended: () => new Promise<void>(() => undefined),
    stop: async () => {},
    kill: refuse,
    restart: refuse,
  };
}

/** Makes the directory private to this user, and adds a `.gitignore` that ignores all of it. */
async function prepareDirectory(dir: string, dbFile: string): Promise<void> {
  await mkdir(dirname(dbFile), { recursive: true, mode: 0o700 });
  if (dirname(dbFile) !== dir) return;
  await chmod(dir, 0o700);
  const ignore = join(dir, '.gitignore');
  await access(ignore).catch(() => writeFile(ignore, '*\n'));
}
