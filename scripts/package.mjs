// Packs what would be published and reads it as a user's tools do: the right files, exports that resolve, types
// that match.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'perdure-pack-'));
const shell = process.platform === 'win32';

/**
 * @param {string} command
 * @param {string[]} args
 */
function step(command, args) {
  const { status, stdout } = spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    shell,
  });
  if (status !== 0) {
    console.log(stdout);
    throw new Error(`${command} ${args[0] ?? ''} failed with code ${status ?? 'none'}`);
  }
  return stdout;
}

/**
 * All strings within a value: the files that `exports` and `bin` name.
 *
 * @param {unknown} value
 * @returns {string[]}
 */
function leaves(value) {
  return typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(leaves);
}

try {
  const [tarball] = /** @type {{ filename: string, files: { path: string }[] }[]} */ (
    JSON.parse(step('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]))
  );
  if (tarball === undefined) throw new Error('npm pack made no tarball');
  const paths = new Set(tarball.files.map(({ path }) => path));

  const { exports, bin } = /** @type {{ exports: unknown, bin: unknown }} */ (
    JSON.parse(readFileSync('package.json', 'utf8'))
  );
  const wanted = leaves([exports, bin]);
  for (const path of [...wanted, 'README.md', 'LICENSE']) {
    if (!paths.has(path.replace(/^\.\//, ''))) throw new Error(`${path} is not in the tarball`);
  }
  for (const path of paths) {
    if (/^(test|examples|bench|faults|scripts)\/|\.tsbuildinfo$/.test(path)) {
      throw new Error(`${path} does not belong in the tarball`);
    }
  }
  const file = join(folder, tarball.filename);
  step('publint', ['run', '--strict', '--pack', 'npm', file]);
  step('attw', ['--profile', 'esm-only', '--no-emoji', file]);
  console.log(`${paths.size} files, ${wanted.length} entries, publint and attw content`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
