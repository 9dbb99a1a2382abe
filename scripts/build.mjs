// Compiles src to dist. The compiler writes beside it first, so that an error leaves the last good build alone
// and a process that runs from dist never sees half of one.
import { spawnSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';

const fresh = `dist-${process.pid}`;
const old = `${fresh}-old`;

/**
 * @param {string} command
 * @param {string[]} args
 * @returns {boolean} whether it did what it should
 */
function step(command, ...args) {
  const windows = process.platform === 'win32';
  const { status } = spawnSync(command, args, {
    stdio: 'inherit',
    shell: windows && command !== process.execPath,
  });
  if (status !== 0) process.exitCode = status ?? 1;
  return status === 0;
}

try {
  if (
    step('tsc', '-p', 'tsconfig.build.json', '--outDir', fresh) &&
    step(process.execPath, 'scripts/bundle-workflows.mjs', fresh)
  ) {
    if (existsSync('dist')) renameSync('dist', old);
    renameSync(fresh, 'dist');
  }
} finally {
  for (const folder of [fresh, old]) rmSync(folder, { recursive: true, force: true });
}
