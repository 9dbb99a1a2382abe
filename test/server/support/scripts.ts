/** Directories and small shell scripts that stand in for the programs of a machine. */

import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A directory that is removed with the test. */
export async function scratch(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'perdure-test-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** Writes an executable shell script; its directory is created. Returns the path. */
export async function script(dir: string, name: string, body: string): Promise<string> {
  await mkdir(dir, { recursive: true });
  const file = join(dir, name);
  await writeFile(file, `#!/bin/sh\n${body}\n`);
  await chmod(file, 0o755);
  return file;
}

/** What a Temporal CLI of that server version says when asked for its version. */
export function temporalScript(server = '1.29.1', cli = '1.5.1'): string {
  return `echo "temporal version ${cli} (Server ${server}, UI 2.42.1)"`;
}
