/**
 * The package as it is built, for tests that run commands: a command from the sources takes twice the time to load.
 * A build is kept by the digest of what it was made from.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import packageJson from '../../../package.json' with { type: 'json' };

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CACHE = join('node_modules', '.cache', 'perdure');

/** What a test needs of a build. */
export interface BuiltPackage {
  /** The file to run: the command line. */
  readonly main: string;
  /** Maps the package's names to the build, for modules of TypeScript that import it. */
  readonly tsconfig: string;
}

let built: BuiltPackage | undefined;

/** Builds the package, or takes the build of the same sources. */
export function builtPackage(): BuiltPackage {
  built ??= build();
  return built;
}

function build(): BuiltPackage {
  const home = join(CACHE, sourcesDigest());
  const dist = join(home, 'dist');
  const tsconfig = join(ROOT, home, 'tsconfig.json');
  if (!existsSync(join(ROOT, dist))) {
    mkdirSync(join(ROOT, home), { recursive: true });
    const paths = Object.entries(packageJson.exports).flatMap(([door, at]) =>
      typeof at === 'string' ? [] : [[door.replace('.', 'perdure'), [at.default]]],
    );
    writeFileSync(tsconfig, JSON.stringify({ compilerOptions: { paths: Object.fromEntries(paths) } }));
    writeFileSync(join(ROOT, home, 'package.json'), JSON.stringify(packageJson));
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs', '--code', dist], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    // Another process may have built the same meanwhile.
    if (status !== 0 && !existsSync(join(ROOT, dist))) {
      throw new Error(`the build failed:\n${stdout}${stderr}`);
    }
  }
  return { main: join(ROOT, dist, 'cli', 'main.js'), tsconfig };
}

function sourcesDigest(): string {
  const hash = createHash('sha256');
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  for (const path of [
    'package.json',
    'scripts/build.mjs',
    'scripts/bundle-console.mjs',
    'scripts/bundle-workflows.mjs',
  ])
    sources.push(join(ROOT, path));
  for (const path of sources.sort()) hash.update(path).update(readFileSync(path));
  return hash.digest('hex').slice(0, 16);
}
