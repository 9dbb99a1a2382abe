/** A disk without room, for one process: its files may not grow beyond what they are. Linux, with util-linux. */
import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Identity } from './process.ts';

const run = promisify(execFile);

/** Why rooms cannot be taken here, or `null`. */
export function roomIsFixed(): string | null {
  const there = spawnSync('prlimit', ['--version']).status === 0;
  return there && process.platform === 'linux' ? null : 'it needs Linux, and prlimit (util-linux)';
}

/**
 * Takes the room from a process and its children (`prlimit --fsize`): a write beyond `bytes` of any file fails with
 * EFBIG, where a full disk would say ENOSPC; what is in a file already can be written over. Returns what gives the
 * room back.
 */
export async function takeRoom(pid: number, bytes: number): Promise<() => Promise<void>> {
  const limit = async (value: string): Promise<void> => {
    for (const each of [pid, ...childrenOf(pid)]) {
      try {
        await run('prlimit', ['--pid', String(each), `--fsize=${value}`], ownerOf(each));
      } catch (error) {
        // A backend of a database ends with its connection.
        if (each === pid) throw error;
      }
    }
  };
  await limit(`${bytes}:unlimited`);
  return () => limit('unlimited:unlimited');
}

/** Limits are set by the account whose process it is: root in a container may not. */
function ownerOf(pid: number): Identity {
  if (process.getuid?.() !== 0) return {};
  const { uid, gid } = statSync(`/proc/${pid}`);
  return { uid, gid };
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        // After the name, which may contain anything in brackets: the state, then the parent.
        const stat = readFileSync(join('/proc', name, 'stat'), 'utf8');
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid;
      } catch {
        return false;
      }
    })
    .map(Number);
}
