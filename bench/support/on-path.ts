/** Programs of this machine. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * The path of the first of these programs in the folders of `PATH`, and then in `more`; `undefined` when there is none.
 */
export function onPath(names: readonly string[], more: readonly string[] = []): string | undefined {
  const folders = [...pathFolders(), ...more];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

/** The folders of `PATH`. */
export function pathFolders(): string[] {
  return (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
