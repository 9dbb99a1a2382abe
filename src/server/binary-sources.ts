/** Two ways to get the Temporal CLI when this machine has none: the SDK's download, and a build with Go. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Environment } from './cache-dir.ts';

/** Puts an executable into `dir` and returns its path. Throws the reason when it cannot. */
export interface BinaryRequest {
  readonly version: string;
  readonly dir: string;
  readonly env: Environment;
  readonly onProgress: (line: string) => void;
}

/** If no byte has arrived after this time, there is no internet: stop waiting. */
const FIRST_BYTE_MS = 15_000;
const DOWNLOAD_MS = 5 * 60_000;
const BUILD_MS = 15 * 60_000;

/**
 * Lets the Temporal SDK download the CLI into the given directory.
 *
 * The SDK only downloads when it starts a server, cannot be cancelled, and reads its proxy from the environment.
 * So it runs in a child process that we can kill, and that ends when we end.
 */
export async function downloadWithSdk({ version, dir, env, onProgress }: BinaryRequest): Promise<string> {
  onProgress(`downloading Temporal CLI ${version} with the Temporal SDK`);
  const child = spawn(process.execPath, ['--input-type=commonjs', '--eval', DOWNLOAD_SCRIPT], {
    env: {
      ...env,
      PERDURE_SDK: createRequire(import.meta.url).resolve('@temporalio/testing'),
      PERDURE_DOWNLOAD_DIR: dir,
      PERDURE_DOWNLOAD_VERSION: `v${version}`,
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const started = performance.now();
  let shown = started;
  return watch(child, 'the download', {
    limitMs: DOWNLOAD_MS,
    tick: async () => {
      const bytes = await downloadedBytes(dir);
      const now = performance.now();
      if (bytes === 0 && now - started > FIRST_BYTE_MS) {
        throw new Error(
          `nothing received within ${FIRST_BYTE_MS / 1000} s: temporal.download cannot be reached`,
        );
      }
      if (bytes > 0 && now - shown > 2_000) {
        onProgress(`downloading Temporal CLI ${version}: ${Math.round(bytes / 1e6)} MB`);
        shown = now;
      }
    },
    explain: (stderr) => lastLines(stderr, 1),
  }).then(() => join(dir, `temporal-v${version}${process.platform === 'win32' ? '.exe' : ''}`));
}

const DOWNLOAD_SCRIPT = `
process.on('disconnect', () => process.exit(1));
const { TestWorkflowEnvironment } = require(process.env.PERDURE_SDK);
const executable = {
  type: 'cached-download',
  version: process.env.PERDURE_DOWNLOAD_VERSION,
  downloadDir: process.env.PERDURE_DOWNLOAD_DIR,
};
TestWorkflowEnvironment.createLocal({ server: { executable } })
  .then((environment) => environment.teardown())
  .then(() => process.exit(0), (error) => {
    console.error(String(error.message).replaceAll('\\n', ' '));
    process.exit(1);
  });
`;

async function downloadedBytes(dir: string): Promise<number> {
  const sizes = await Promise.all(
    (await readdir(dir)).map((name) =>
      stat(join(dir, name)).then(
        (found) => found.size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Builds the CLI with `go install` into the given directory; about two minutes on two cores. */
export async function buildWithGo({ version, dir, env, onProgress }: BinaryRequest): Promise<string> {
  onProgress(`building Temporal CLI ${version} with Go; this happens once and takes about two minutes`);
  const go = spawn('go', ['install', '-v', `github.com/temporalio/cli/cmd/temporal@v${version}`], {
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
  return join(dir, process.platform === 'win32' ? 'temporal.exe' : 'temporal');
}

/** Go needs a home directory for its caches, and writes a cross-compiled binary to another folder. */
async function goEnvironment(dir: string, env: Environment): Promise<Record<string, string | undefined>> {
  const { GOOS: _os, GOARCH: _arch, ...rest } = env;
  const goEnv: Record<string, string | undefined> = { ...rest, GOBIN: dir, CGO_ENABLED: '0' };
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
        throw new Error(`${what} took over ${limitMs / 60_000} minutes`);
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
