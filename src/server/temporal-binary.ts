/** Finds a `temporal` binary, or downloads or builds one. */

import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf, PerdureError } from '../contract/errors.ts';
import { cacheDir, type Environment } from './cache-dir.ts';
import { download, TEMPORAL_CACHE_NAME } from './download.ts';
import { breakLock, createLock, isHeld, parseHolder, readLock } from './file-lock.ts';
import { buildWithGo, OLDEST_GO } from './go-build.ts';
import { poll } from './wait.ts';

/** Sessions start with update-with-start, which older servers keep behind a flag. */
const OLDEST_SERVER = [1, 28] as const;

/** A runnable Temporal CLI and where it came from. */
export interface TemporalBinary {
  /** Absolute path. */
  readonly path: string;
  readonly source: 'path' | 'cache' | 'download' | 'build';
  /** The first line of `temporal --version`. */
  readonly version: string;
}

/** One failed attempt to get a binary. */
export interface BinaryAttempt {
  readonly way: string;
  readonly reason: string;
}

/** Options of {@link findTemporalBinary}. */
export interface FindTemporalOptions {
  /** Receives progress messages, one line each. */
  readonly onProgress?: (line: string) => void;
  /** The environment that holds `PATH`, `HOME`, `XDG_CACHE_HOME` and Go's settings. Default: the process's own. */
  readonly env?: Environment;
  /** Whether the CLI may be downloaded. Default true. */
  readonly download?: boolean;
  /** Whether the CLI may be built with Go. Default true. */
  readonly build?: boolean;
}

/**
 * Finds a Temporal CLI: on `PATH`, in Perdure's cache, by a download with a pinned checksum, by a Go build (about two
 * minutes).
 *
 * A download or build is moved into the cache with one rename, so an interrupted attempt leaves no broken binary.
 * Processes that look at the same time wait for the first one's result.
 *
 * @throws PerdureError `SERVER_UNAVAILABLE` with `details.attempts` ({@link BinaryAttempt}[]) when every attempt
 * failed.
 */
export async function findTemporalBinary(options: FindTemporalOptions = {}): Promise<TemporalBinary> {
  const env = options.env ?? process.env;
  const attempts: BinaryAttempt[] = [];

  const onPath = await searchPath(env, attempts);
  if (onPath) return onPath;

  let home: string;
  try {
    home = join(cacheDir(env), TEMPORAL_CACHE_NAME);
    await mkdir(home, { recursive: true, mode: 0o700 });
  } catch (error) {
    attempts.push({ way: 'the cache directory', reason: messageOf(error) });
    throw nothingFound(attempts);
  }
  const target = join(home, executableName('temporal'));
  const cached = await tryBinary(target, 'cache');
  if (typeof cached === 'object') return cached;

  // If we may not download or build, there is nothing to wait for.
  if (options.download === false && options.build === false) {
    attempts.push({ way: `the cache (${target})`, reason: cached });
    for (const { way, source } of WAYS) attempts.push(notAllowed(way, source));
    throw nothingFound(attempts);
  }

  const release = await lockBuild(`${home}.lock`, options.onProgress);
  try {
    const meanwhile = await tryBinary(target, 'cache');
    if (typeof meanwhile === 'object') return meanwhile;
    attempts.push({ way: `the cache (${target})`, reason: meanwhile });
    return await fetchInto(home, target, { ...options, env }, attempts);
  } finally {
    await release();
  }
}

const WAYS = [
  { source: 'download', way: 'a download', fetch: download },
  { source: 'build', way: 'a Go build', fetch: buildWithGo },
] as const;

function notAllowed(way: string, source: string): BinaryAttempt {
  return { way, reason: `not allowed here (${source}: false)` };
}

async function fetchInto(
  home: string,
  target: string,
  options: FindTemporalOptions & { readonly env: Environment },
  attempts: BinaryAttempt[],
): Promise<TemporalBinary> {
  await removeLeftovers(home);
  for (const { source, way, fetch } of WAYS) {
    if (options[source] === false) {
      attempts.push(notAllowed(way, source));
      continue;
    }
    const staging = await mkdtemp(join(home, STAGING));
    try {
      const produced = await fetch({
        dir: staging,
        env: options.env,
        onProgress: options.onProgress ?? (() => undefined),
      });
      const usable = await tryBinary(produced, source);
      if (typeof usable === 'string') throw new Error(usable);
      await rename(produced, target);
      return { ...usable, path: target };
    } catch (error) {
      attempts.push({ way, reason: messageOf(error) });
      options.onProgress?.(`${way}: ${messageOf(error)}`);
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
  }
  throw nothingFound(attempts);
}

const STAGING = '.staging-';

/** Only called while holding the lock, so any staging directory was left by a dead process. */
async function removeLeftovers(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    if (name.startsWith(STAGING)) await rm(join(home, name), { recursive: true, force: true });
  }
}

async function searchPath(env: Environment, attempts: BinaryAttempt[]): Promise<TemporalBinary | null> {
  let seen = 0;
  for (const dir of (env['PATH'] ?? '').split(delimiter)) {
    const file = join(dir, executableName('temporal'));
    if (dir === '' || !(await isExecutable(file))) continue;
    seen += 1;
    const found = await tryBinary(file, 'path');
    if (typeof found === 'object') return found;
    attempts.push({ way: `\`temporal\` on PATH (${file})`, reason: found });
  }
  if (seen === 0) attempts.push({ way: '`temporal` on PATH', reason: 'not there' });
  return null;
}

/** The binary if it runs and is recent enough, else the reason why not. */
async function tryBinary(path: string, source: TemporalBinary['source']): Promise<TemporalBinary | string> {
  if (!(await isExecutable(path))) return 'not there';
  let output: string;
  try {
    output = (await promisify(execFile)(path, ['--version'], { timeout: 10_000 })).stdout;
  } catch (error) {
    const { killed, stderr } = error as { killed?: boolean; stderr?: string };
    if (killed) return '`--version` did not answer within 10 s';
    return `\`--version\` failed: ${lastLine(stderr ?? '') || messageOf(error)}`;
  }
  const version = output.split('\n', 1)[0]?.trim() ?? '';
  const server = /^temporal version .*\bServer (\d+)\.(\d+)/.exec(version);
  if (!server) return `\`--version\` says ${JSON.stringify(version)}, which is not the Temporal CLI`;
  const [major, minor] = [Number(server[1]), Number(server[2])];
  if (major < OLDEST_SERVER[0] || (major === OLDEST_SERVER[0] && minor < OLDEST_SERVER[1])) {
    return `its server is ${major}.${minor}; at least ${OLDEST_SERVER.join('.')} is needed`;
  }
  return { path, source, version };
}

/** Waits until no other process is downloading or building. Returns a function that releases the lock. */
async function lockBuild(path: string, onProgress?: (line: string) => void): Promise<() => Promise<void>> {
  let told = false;
  const lock = await poll(
    async () => {
      const seen = await readLock(path);
      if (seen === null) return (await createLock(path, {})) ?? undefined;
      const holder = parseHolder(seen);
      if (holder === null || !(await isHeld(path, holder))) return breakLock(path, seen);
      if (!told) onProgress?.(`waiting for process ${holder.ownerPid}, which is fetching Temporal`);
      told = true;
      return undefined;
    },
    Number.POSITIVE_INFINITY,
    250,
  );
  return async () => lock?.release();
}

function nothingFound(attempts: BinaryAttempt[]): PerdureError {
  const tried = attempts.map(({ way, reason }) => `  - ${way}: ${reason}`).join('\n');
  return new PerdureError(
    'SERVER_UNAVAILABLE',
    `No Temporal server to start. Tried in this order:\n${tried}\nNext: install the Temporal CLI so that \`temporal\` is on PATH (https://docs.temporal.io/cli), or install Go ${OLDEST_GO} or later, or set TEMPORAL_ADDRESS to a server that runs.`,
    { details: { attempts } },
  );
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function executableName(name: string): string {
  return process.platform === 'win32' ? `${name}.exe` : name;
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
