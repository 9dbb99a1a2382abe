/**
 * A lock file for processes of one kernel, also across containers. Node has no flock, so the holder listens on a socket
 * beside the file; the kernel closes the socket when the process dies. Where no socket is possible (a path that is too
 * long, some mounts), the holder's process id is checked instead.
 */

import { randomBytes, randomUUID } from 'node:crypto';
import { chmodSync, readFileSync } from 'node:fs';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { relative } from 'node:path';

/** The holder of a lock, as the lock file names it. */
export interface Holder {
  readonly token: string;
  readonly ownerPid: number;
  /** Whether it listens on the lock's socket. */
  readonly socket: boolean;
}

/** A lock that this process holds. */
export interface FileLock {
  /** Replaces the content of the lock file, except the holder. */
  publish(content: object): Promise<void>;
  /** Releases the lock. Does nothing when the lock is no longer ours. */
  release(): Promise<void>;
}

/** The longest path of a socket, in bytes, on every system. */
const SOCKET_PATH = 103;

/** Whether a process with this id runs, including one that we may not signal. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return !isZombie(pid);
}

/** A dead orphan keeps its process id for ever in a container whose first process does not reap. */
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
 * Creates the lock with its content in one step, so a reader never sees it empty.
 * @returns null when another process holds it.
 */
export async function createLock(path: string, content: object): Promise<FileLock | null> {
  const token = randomBytes(8).toString('hex');
  const listener = await listen(path, token);
  const holder: Holder = { token, ownerPid: process.pid, socket: listener !== null };
  const draft = `${path}.${token}.new`;
  const write = (more: object): Promise<void> =>
    writeFile(draft, JSON.stringify({ ...more, ...holder }), { mode: 0o600 });
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

/** Parses the holder from the lock's text. Null when the text is not valid. */
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

/** Whether the holder is alive. A frozen process is alive. */
export async function isHeld(path: string, { token, ownerPid, socket }: Holder): Promise<boolean> {
  const at = socketPath(path, token);
  if (!socket || at === null) return isAlive(ownerPid);
  const refusal = await new Promise<string | undefined>((resolve) => {
    const connection = connect(at, () => resolve(undefined));
    connection.on('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    connection.once('connect', () => connection.destroy());
  });
  if (refusal === 'ECONNREFUSED' || refusal === 'ENOENT') return false;
  // Any other error proves nothing: the socket may belong to another user.
  return refusal === undefined || isAlive(ownerPid);
}

/**
 * Removes the lock of a dead holder, unless its content has changed since we read it.
 * Two processes can find the same dead holder at once; the slower one must not remove the faster one's new lock.
 * @returns undefined, so that the caller tries again.
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

/** The shortest form of the socket's path, or null when even that is too long. */
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
    // Not every file system supports sockets.
    server.once('error', () => resolve(null));
    server.listen(at, () => {
      if (process.platform !== 'win32') chmodSync(at, 0o600);
      resolve(server);
    });
  });
}

async function removeSocket(path: string, token: string | undefined): Promise<void> {
  if (token === undefined || process.platform === 'win32') return;
  await rm(`${path}.${token}`, { force: true });
}
