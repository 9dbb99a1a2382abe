/**
 * Installs a peer's packages beside the compiled bench, only when the peer is measured, so that nobody else gets them.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A peer's folder, ready to run. */
export interface Installed {
  folder: string;
  /** Version of each of its direct packages. */
  versions: Record<string, string>;
}

const HERE = fileURLToPath(new URL('.', import.meta.url));
const SOURCES = 'bench/peers';

/** Copies the folder and installs the packages of its lockfile. */
export async function install(folder: string): Promise<Installed> {
  const from = join(SOURCES, folder);
  const to = join(HERE, folder);
  const before = await lockOf(to);
  const wanted = await lockOf(from);
  await mkdir(to, { recursive: true });
  for (const name of await readdir(from)) {
    // Skip packages that an editor has installed in the sources.
    if (name !== 'node_modules' && name !== 'package-lock.json') await cp(join(from, name), join(to, name));
  }
  const [manifest] = await readJson<{ dependencies?: object; optionalDependencies?: object }>(
    to,
    'package.json',
  );
  if (before !== wanted) {
    console.error(`Installing ${folder} from the registry into ${to}, this once …`);
    const started = performance.now();
    await rm(join(to, 'package-lock.json'), { force: true });
    const done = join(to, 'package-lock.json');
    const partial = join(to, 'npm-shrinkwrap.json');
    await cp(join(from, 'package-lock.json'), partial);
    await npmCi(to);
    // Only a complete installation leaves the lockfile by which the next run recognises it.
    await rm(partial);
    await cp(join(from, 'package-lock.json'), done);
    console.error(`Installed ${folder} in ${((performance.now() - started) / 1_000).toFixed(0)} s.`);
  }
  const versions: Record<string, string> = {};
  for (const name of Object.keys({ ...manifest?.dependencies, ...manifest?.optionalDependencies })) {
    const [found] = await readJson<{ version: string }>(to, 'node_modules', name, 'package.json');
    if (found !== undefined) versions[name] = found.version;
  }
  return { folder: to, versions };
}

/**
 * A Node of that major version or later: this one, or the one in the peer's packages.
 *
 * @throws Error when there is neither.
 */
export async function findNode(major: number, folder: string): Promise<string> {
  if (Number(process.versions.node.split('.')[0]) >= major) return process.execPath;
  const path = join(folder, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
  try {
    await readFile(path);
    return path;
  } catch {
    throw new Error(`needs Node ${major}; this is ${process.version}, and npm has none for this platform`);
  }
}

async function lockOf(folder: string): Promise<string | undefined> {
  return readFile(join(folder, 'package-lock.json'), 'utf8').catch(() => undefined);
}

/** Returns an empty list if there is no such file. */
async function readJson<T>(...path: string[]): Promise<[T?]> {
  const text = await readFile(join(...path), 'utf8').catch(() => undefined);
  return text === undefined ? [] : [JSON.parse(text) as T];
}

async function npmCi(cwd: string): Promise<void> {
  const args = ['ci', '--legacy-peer-deps', '--no-audit', '--no-fund', '--loglevel=error'];
  const npm = process.env['npm_execpath'];
  const [command, all] =
    npm !== undefined && /npm-cli\.c?js$/.test(npm) ? [process.execPath, [npm, ...args]] : ['npm', args];
  const child = spawn(command, all, {
    cwd,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32' && command === 'npm',
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`npm ci ended with ${code}`);
}
