import { lstat, mkdir } from 'node:fs/promises';

/** Makes a directory that is to be this user's alone. @returns whether it is: what others can write is not to be trusted */
export async function ownDirectory(path: string): Promise<boolean> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const { uid, mode } = await lstat(path);
  return process.platform === 'win32' || (uid === (process.getuid?.() ?? 0) && (mode & 0o022) === 0);
}
