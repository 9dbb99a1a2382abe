/** Where binaries that we fetched or built are kept between runs. */

import { accessSync, constants, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The process's environment, or a stand-in for it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The per-user cache directory of Perdure, created when missing.
 *
 * `$XDG_CACHE_HOME/perdure`, else the platform's own place (`~/.cache`, `~/Library/Caches`, `%LOCALAPPDATA%`).
 * A home that is unset or cannot be written to (a container, a build agent) leads to a directory under the
 * system's temporary one.
 *
 * @throws Error when not even the temporary directory can be used.
 */
export function cacheDir(env: Environment = process.env): string {
  for (const candidate of homeCandidates(env)) {
    try {
      mkdirSync(candidate, { recursive: true });
      accessSync(candidate, constants.W_OK | constants.X_OK);
      return candidate;
    } catch {
      // Not ours to write to: the next place.
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

/** The temporary directory is everyone's: what we run from there must lie in a directory only we can write. */
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
