/**
 * `npm run bench`: the measurements of docs/performance.md.
 *
 *   npm run bench                        all of them
 *   npm run bench -- --only turns,bytes  some
 *   npm run bench -- --quick             fewer rounds, to see that it works
 *   npm run bench -- --only peers --peers perdure,dbos
 *                                        of the comparison with other runtimes, some
 *   npm run bench -- --write-docs        measures nothing, writes the docs from the runs that are kept
 *
 * It compiles the sources and runs them in a plain Node process: a loader would be measured too.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { status } = spawnSync('tsc', ['-p', 'bench/tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
  shell: process.platform === 'win32',
});
if (status !== 0) process.exit(status ?? 1);
const child = spawn(process.execPath, ['.perdure/bench/bench/run.js', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
const [code] = (await once(child, 'exit')) as [number | null];
process.exitCode = code ?? 1;
