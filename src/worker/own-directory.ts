import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Makes a directory for this user alone. @returns `false` if others can write to it: then do not trust it */
export function ownDirectory(path: string): boolean {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(path);
  return process.platform === 'win32' || (uid === (process.getuid?.() ?? 0) && (mode & 0o022) === 0);
}

/** A directory of this user only, because its files are executed. */
export function filesDirectory(): string {
  const shared = join(tmpdir(), `perdure-bundles-${process.getuid?.() ?? 0}`);
  return ownDirectory(shared) ? shared : mkdtempSync(`${shared}-`);
}

/** A module with this source, named after its digest. All processes of this user share it. */
export function generatedModule(source: string, prefix = ''): string {
  const digest = createHash('sha256').update(source).digest('hex').slice(0, 32);
  const path = join(filesDirectory(), `${prefix}${digest}.cjs`);
  if (!existsSync(path)) writeWhole(path, source);
  return path;
}

/** Writes a file so that other processes never see half of it. */
export function writeWhole(path: string, text: string): void {
  const partial = `${path}.${process.pid}`;
  writeFileSync(partial, text);
  renameSync(partial, path);
}
