/** A lock file between processes of one machine. Node has no flock, so liveness is judged by the holder's pid. */

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';

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
 * @returns false when somebody holds it.
 */
export async function createLock(path: string, content: object): Promise<boolean> {
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, JSON.stringify(content));
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
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

/** Replaces the content of a lock that the caller holds. */
export async function updateLock(path: string, content: object): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, JSON.stringify(content));
  await rename(draft, path);
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
  await rm(aside, { force: true });
  return undefined;
}
