import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { SHORT_LIVED } from './short-lived.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The file of a module in the build of this run (`built-processes.ts`), or `undefined` if it is not built. */
export function builtFile(module: string): string | undefined {
  // Projects without a server have no build.
  const folder = inject('builtProcesses') as string | undefined;
  if (folder === undefined || !module.endsWith('.ts')) return undefined;
  const file = join(folder, relative(ROOT, module).replace(/ts$/, 'js'));
  return existsSync(file) ? file : undefined;
}

/** Node's arguments that run a module as one process: from the build of this run, or from its source. */
export function programOf(module: string): string[] {
  const built = builtFile(module);
  // One process, not the loader's two: a SIGKILL must hit the one that does the work.
  return built === undefined ? ['--import', 'tsx', module] : [...SHORT_LIVED, built];
}
