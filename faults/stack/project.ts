import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The absolute path of a file of this project. Also works for code that runs from the bench's build. */
export function projectFile(path: string): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'docker-compose.yml'))) folder = dirname(folder);
  return join(folder, path);
}
