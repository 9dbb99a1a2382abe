/**
 * A lock file between processes of one kernel, in whatever containers they run. Node has no flock: a socket beside the
 * file, which the kernel closes with its process, says whether the holder lives. Where none can be (a path that is too
 * long, some mounts), the holder's process id has to do.
 */

import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { relative } from 'node:path';

/** Who has a lock: the part of its content that is written and read here. */
export interface Holder {
  readonly token: string;
  readonly ownerPid: number;
  /** Whether it listens on the lock's socket. */
  readonly socket: boolean;
}

/** A lock that this process holds. */
export interface FileLock {
  /** Replaces what else the lock says. */
  publish(content: object): Promise<void>;
  /** Lets go; nothing happens when the lock is no longer ours. */
  release(): Promise<void>;
}

/** The longest path of a socket, in bytes, on every system. */
const SOCKET_PATH = 103;

/** Whether a process with this id runs (also one that we may not signal). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return !isZombie(pid);
}

/** In a container whose first process reaps nobody, a dead orphan keeps its process id for ever. */
function isZombie(pid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return /^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
}

/**
 * Creates the lock with its content in one step: a reader never sees it empty.
 * @returns null when somebody holds it.
 */
export async function createLock(path: string, content: object): Promise<FileLock | null> {
  const token = randomBytes(8).toString('hex');
  const listener = await listen(path, token);
  const holder: Holder = { token, ownerPid: process.pid, socket: listener !== null };
  const draft = `${path}.${token}.new`;
  const write = (more: object): Promise<void> => writeFile(draft, JSON.stringify({ ...more, ...holder }));
  const publish = async (more: object): Promise<void> => {
    await write(more);
    await rename(draft, path);
  };
  const release = async (): Promise<void> => {
    const seen = await readLock(path);
    if (seen !== null && parseHolder(seen)?.token === token) await rm(path, { force: true });
    listener?.close();
    await removeSocket(path, token);
  };
  try {
    await write(content);
    await link(draft, path);
    return { publish, release };
  } catch (error) {
    await release();
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** The text of the lock, or null when there is none. */
export async function readLock(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Who holds the lock by its text, or null when that cannot be read. */
export function parseHolder(text: string): (Holder & Record<string, unknown>) | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { token, ownerPid, socket } = value as Record<string, unknown>;
  if (typeof token !== 'string' || typeof ownerPid !== 'number' || typeof socket !== 'boolean') return null;
  return { ...value, token, ownerPid, socket };
}

/** Whether the holder lives: a frozen one does. */
export async function isHeld(path: string, { token, ownerPid, socket }: Holder): Promise<boolean> {
  const at = socketPath(path, token);
  if (!socket || at === null) return isAlive(ownerPid);
  const refusal = await new Promise<string | undefined>((resolve) => {
    const connection = connect(at, () => resolve(undefined));
    connection.on('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    connection.once('connect', () => connection.destroy());
  });
  if (refusal === 'ECONNREFUSED' || refusal === 'ENOENT') return false;
  // Anything else, as of another user's socket that we may not ask, is no proof.
  return refusal === undefined || isAlive(ownerPid);
}

/**
 * Takes away a lock whose holder is gone, if it still reads as it did when that was judged.
 * Two processes can judge the same lock at once; the slower one must not remove the quicker one's new lock.
 * @returns undefined: there is nothing to go on with but another try.
 */
export async function breakLock(path: string, seen: string): Promise<undefined> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if ((await readLock(aside)) !== seen) await link(aside, path).catch(() => undefined);
  else await removeSocket(path, parseHolder(seen)?.token);
  await rm(aside, { force: true });
  return undefined;
}

/** As short as it can be written from here, or null when that is too long. */
function socketPath(path: string, token: string): string | null {
  if (process.platform === 'win32') return `\\\\.\\pipe\\perdure-${token}`;
  const absolute = `${path}.${token}`;
  const near = relative(process.cwd(), absolute);
  const shorter = near.length < absolute.length ? near : absolute;
  return Buffer.byteLength(shorter) > SOCKET_PATH ? null : shorter;
}

async function listen(path: string, token: string): Promise<Server | null> {
  const at = socketPath(path, token);
  if (at === null) return null;
  const server = createServer((connection) => connection.destroy());
  server.unref();
  return new Promise((resolve) => {
    // Not every file system has sockets.
    server.once('error', () => resolve(null));
    server.listen(at, () => resolve(server));
  });
}

async function removeSocket(path: string, token: string | undefined): Promise<void> {
  if (token === undefined || process.platform === 'win32') return;
  await rm(`${path}.${token}`, { force: true });
}
