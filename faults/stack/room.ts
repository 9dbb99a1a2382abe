/** Simulates a full disk for one process: its files may not grow any more. Linux, with util-linux. */
import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Identity } from './process.ts';

const run = promisify(execFile);

/** Why a full disk cannot be simulated here, or `null`. */
export function roomIsFixed(): string | null {
  const there = spawnSync('prlimit', ['--version']).status === 0;
  return there && process.platform === 'linux' ? null : 'it needs Linux, and prlimit (util-linux)';
}

/**
 * Limits the files of a process and its children (`prlimit --fsize`): a write beyond `bytes` of any file fails with
 * EFBIG instead of the ENOSPC of a full disk. Existing content can be overwritten. Returns a function that removes the
 * limit.
 */
export async function takeRoom(pid: number, bytes: number): Promise<() => Promise<void>> {
  const limit = async (value: string): Promise<void> => {
    for (const each of [pid, ...childrenOf(pid)]) {
      try {
        await run('prlimit', ['--pid', String(each), `--fsize=${value}`], ownerOf(each));
      } catch (error) {
        // A backend of a database may have ended with its connection.
        if (each === pid) throw error;
      }
    }
  };
  await limit(`${bytes}:unlimited`);
  return () => limit('unlimited:unlimited');
}

/** The limits must be set by the account of the process: root in a container may not set them. */
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
        // The name may contain anything in brackets. After it come the state and then the parent.
        const stat = readFileSync(join('/proc', name, 'stat'), 'utf8');
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid;
      } catch {
        return false;
      }
    })
    .map(Number);
}
