/** The cache of binaries that we downloaded or built. */

import { accessSync, constants, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The process's environment, or a stand-in for it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The per-user cache directory of Perdure, created when missing.
 *
 * `$XDG_CACHE_HOME/perdure`, else the platform's own place (`~/.cache`, `~/Library/Caches`, `%LOCALAPPDATA%`).
 * If the home directory is unset or read-only (a container, a build agent), it is a directory below the system's
 * temporary one.
 *
 * @throws Error when not even the temporary directory can be used.
 */
export function cacheDir(env: Environment = process.env): string {
  for (const candidate of homeCandidates(env)) {
    try {
      mkdirSync(candidate, { recursive: true, mode: 0o700 });
      accessSync(candidate, constants.W_OK | constants.X_OK);
      return candidate;
    } catch {
      // Not writable: try the next place.
    }
  }
  return sharedTempCacheDir();
}

function homeCandidates(env: Environment): string[] {
  const candidates: string[] = [];
  if (env['XDG_CACHE_HOME']) candidates.push(join(env['XDG_CACHE_HOME'], 'perdure'));
  if (process.platform === 'win32') {
    if (env['LOCALAPPDATA']) candidates.push(join(env['LOCALAPPDATA'], 'perdure', 'cache'));
  } else if (env['HOME']) {
    const caches = process.platform === 'darwin' ? join('Library', 'Caches') : '.cache';
    candidates.push(join(env['HOME'], caches, 'perdure'));
  }
  return candidates;
}

/**
 * Everyone can write to the temporary directory, so the binaries we run must be in a directory that only we can write
 * to.
 */
function sharedTempCacheDir(): string {
  const uid = process.getuid?.();
  const dir = join(tmpdir(), uid === undefined ? 'perdure' : `perdure-${uid}`);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const stat = lstatSync(dir);
  if (!stat.isDirectory() || (uid !== undefined && (stat.uid !== uid || (stat.mode & 0o022) !== 0))) {
    throw new Error(`${dir} belongs to somebody else or is writable by others; set XDG_CACHE_HOME`);
  }
  return dir;
}
