/** Builds the Temporal CLI with Go, for machines that cannot download it. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from './cache-dir.ts';
import { type BinaryRequest, TEMPORAL_CLI_VERSION as version } from './download.ts';

const BUILD_MS = 15 * 60_000;

/**
 * With the CLI's own version of SQLite (1.34.1), a request that is cancelled in the middle of a statement can leave the
 * database unusable for good: each further statement fails with "interrupted (9)".
 */
const SQLITE_VERSION = '1.44.3';

/** The oldest Go that can build this version of the CLI, as its `go.mod` says. */
export const OLDEST_GO = '1.25.0';

const MODULE = `module perdure.local/temporal

go ${OLDEST_GO}

require (
\tgithub.com/temporalio/cli v${version}
\tmodernc.org/sqlite v${SQLITE_VERSION}
)
`;

/** Builds the CLI into the given directory; about two minutes on two cores. */
export async function buildWithGo({ dir, env, onProgress }: BinaryRequest): Promise<string> {
  onProgress(`building Temporal CLI ${version} with Go, once; this takes two to four minutes`);
  const name = process.platform === 'win32' ? 'temporal.exe' : 'temporal';
  await writeFile(join(dir, 'go.mod'), MODULE);
  const go = spawn('go', ['build', '-mod=mod', '-v', '-o', name, 'github.com/temporalio/cli/cmd/temporal'], {
    cwd: dir,
    env: await goEnvironment(dir, env),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const started = performance.now();
  let [compiled, downloaded, shown] = [0, 0, started];
  await watch(go, 'the Go build', {
    limitMs: BUILD_MS,
    line: (line) => {
      if (line.startsWith('go: ')) downloaded += line.startsWith('go: downloading') ? 1 : 0;
      else compiled += 1;
    },
    tick: () => {
      const now = performance.now();
      if (now - shown < 5_000) return;
      shown = now;
      const what = compiled > 0 ? `${compiled} packages compiled` : `${downloaded} modules downloaded`;
      onProgress(`building Temporal CLI ${version}: ${what}, ${Math.round((now - started) / 1000)} s`);
    },
    explain: (stderr) => lastLines(stderr, 3),
  });
  return join(dir, name);
}

/** Go needs a home directory for its caches. */
async function goEnvironment(dir: string, env: Environment): Promise<Record<string, string | undefined>> {
  const { GOOS: _os, GOARCH: _arch, ...rest } = env;
  const goEnv: Record<string, string | undefined> = { ...rest, GOWORK: 'off', CGO_ENABLED: '0' };
  const home = env['HOME'] ?? env['USERPROFILE'];
  if (!home) {
    const goPath = env['GOPATH'] ?? join(dir, 'gopath');
    goEnv['GOPATH'] = goPath;
    await mkdir(goPath, { recursive: true });
    if (!env['XDG_CACHE_HOME'] && !env['LocalAppData']) goEnv['GOCACHE'] ??= join(dir, 'gocache');
    // The module cache is read-only by default, but we must be able to remove the staging directory.
    goEnv['GOFLAGS'] = `${goEnv['GOFLAGS'] ?? ''} -modcacherw`.trim();
  }
  return goEnv;
}

interface Watching {
  readonly limitMs: number;
  /** Called about four times a second. If it throws, the process is killed and fails with that error. */
  readonly tick: () => Promise<void> | void;
  readonly line?: (line: string) => void;
  readonly explain: (stderr: string) => string;
}

/** Resolves when the process succeeds. Kills it when it takes too long, when `tick` throws, and when we exit. */
function watch(child: ChildProcess, what: string, { limitMs, tick, line, explain }: Watching): Promise<void> {
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  return new Promise<void>((resolve, reject) => {
    const started = performance.now();
    let stderr = '';
    let rest = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      stderr = (stderr + chunk).slice(-16_384);
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      if (line) for (const complete of lines) line(complete);
    });
    const check = async (): Promise<void> => {
      if (performance.now() - started > limitMs) {
        throw new Error(`${what} took more than ${limitMs / 60_000} minutes`);
      }
      await tick();
    };
    const timer = setInterval(() => {
      check().catch((error: unknown) => {
        end();
        reject(error instanceof Error ? error : new Error(String(error)));
      });
    }, 250);
    const settle = (): void => {
      clearInterval(timer);
      process.off('exit', end);
    };
    child.once('error', (error: NodeJS.ErrnoException) => {
      settle();
      const command = child.spawnargs[0];
      reject(error.code === 'ENOENT' ? new Error(`\`${command}\` is not on PATH`) : error);
    });
    child.once('close', (code, signal) => {
      settle();
      if (code === 0) resolve();
      else
        reject(
          new Error(`${what} ended with ${signal ?? `code ${code}`}: ${explain(stderr) || 'no output'}`),
        );
    });
  });
}

function lastLines(text: string, count: number): string {
  return text.trim().split('\n').slice(-count).join(' | ');
}
