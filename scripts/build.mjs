// Builds src to dist: declarations for each module, and the code in few files, because loading many small files is most
// of what the package adds to a worker's start. The build is written beside dist first: an error leaves the last good
// build in place, and a process that runs from dist never sees half a build.
//
//   node scripts/build.mjs                 dist
//   node scripts/build.mjs --code FOLDER   the code alone, in another folder: what the tests of the CLI run
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { build } from 'esbuild';

const [flag, target = 'dist'] = process.argv.slice(2);
const fresh = `${target}-${process.pid}`;
const old = `${fresh}-old`;

/** Modules that run by themselves, besides the doors. */
const RUN = ['testing/harness/worker-main', 'testing/scripted-model/main', 'worker/workflow-bundle'];

/**
 * @param {string} command
 * @param {string[]} args
 */
function step(command, ...args) {
  const windows = process.platform === 'win32';
  const { status } = spawnSync(command, args, {
    stdio: 'inherit',
    shell: windows && command !== process.execPath,
  });
  if (status !== 0) throw new Error(`${[command, ...args].join(' ')} failed with code ${status ?? 'none'}`);
}

/** @returns {string[]} the modules that package.json names, by their places in the sources */
function doors() {
  const { exports, bin } = /** @type {{ exports: object, bin: object }} */ (
    JSON.parse(readFileSync('package.json', 'utf8'))
  );
  const named = JSON.stringify([exports, bin]).matchAll(/"\.\/dist\/([^"]+)\.js"/g);
  return [...named].map(([, place = '']) => place);
}

try {
  if (flag !== '--code') step('tsc', '-p', 'tsconfig.build.json', '--outDir', fresh);
  await build({
    entryPoints: [...doors(), ...RUN].map((place) => `src/${place}.ts`),
    outdir: fresh,
    outbase: 'src',
    bundle: true,
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    // The sources are published beside dist, so the maps need not repeat them.
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'warning',
  });
  step(process.execPath, 'scripts/bundle-console.mjs', `${fresh}/console`);
  step(process.execPath, 'scripts/bundle-workflows.mjs', fresh);
  // If two processes build the code at once, the first build stays: its commands may run by now.
  if (flag !== '--code' && existsSync(target)) renameSync(target, old);
  renameSync(fresh, target);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  for (const folder of [fresh, old]) rmSync(folder, { recursive: true, force: true });
}
