import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file of this project by its path in it, also for code that runs from where the bench is compiled to. */
export function projectFile(path: string): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'docker-compose.yml'))) folder = dirname(folder);
  return join(folder, path);
}
