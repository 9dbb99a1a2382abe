import { lstatSync, mkdirSync } from 'node:fs';

/** Makes a directory for this user alone. @returns whether it is: do not trust one that others can write to */
export function ownDirectory(path: string): boolean {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(path);
  return process.platform === 'win32' || (uid === (process.getuid?.() ?? 0) && (mode & 0o022) === 0);
}
