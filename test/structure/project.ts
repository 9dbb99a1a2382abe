import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of this checkout. */
export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url));

const CONFIG = /^(package\.json|tsconfig.*\.json|biome\.json|knip\.json|\.oxlintrc\.json|\.gitignore)$/;

/** A copy of the sources and the tools' settings, to plant mistakes in. */
export interface ProjectCopy extends AsyncDisposable {
  /** Where the copy lies. */
  readonly root: string;
  /** Writes a file, with its folders, at a path relative to the copy. */
  write(path: string, text: string): Promise<void>;
}

/** Copies this project, without its tests and examples, and lends it the installed packages. */
export async function copyProject(): Promise<ProjectCopy> {
  const root = await mkdtemp(join(tmpdir(), 'perdure-structure-'));
  for (const name of await readdir(ROOT)) {
    if (CONFIG.test(name)) await cp(join(ROOT, name), join(root, name));
  }
  for (const folder of ['src', 'types', 'scripts']) {
    await cp(join(ROOT, folder), join(root, folder), { recursive: true });
  }
  await cp(join(ROOT, '.dependency-cruiser.mjs'), join(root, '.dependency-cruiser.mjs'));
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'), 'junction');
  return {
    root,
    write: async (path, text) => {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

/** What a command that ran to its end said. */
export interface Finished {
  /** Its exit code; -1 if a signal ended it. */
  readonly code: number;
  /** Standard output and standard error, as they came. */
  readonly output: string;
}

/** Runs one of the project's tools to its end. */
export function run(cwd: string, command: string, ...args: string[]): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(command === 'node' ? process.execPath : command, args, {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        NO_COLOR: '1',
        FORCE_COLOR: undefined,
        PATH: join(ROOT, 'node_modules', '.bin') + delimiter + (process.env['PATH'] ?? ''),
      },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code: code ?? -1, output });
    });
  });
}
