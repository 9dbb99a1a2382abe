// Compiles src to dist. The compiler writes beside it first, so that an error leaves the last good build alone
// and a process that runs from dist never sees half of one.
import { spawnSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';

const fresh = `dist-${process.pid}`;
const old = `${fresh}-old`;
try {
  const { status } = spawnSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', fresh], {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) process.exitCode = status ?? 1;
  else {
    if (existsSync('dist')) renameSync('dist', old);
    renameSync(fresh, 'dist');
  }
} finally {
  for (const folder of [fresh, old]) rmSync(folder, { recursive: true, force: true });
}
