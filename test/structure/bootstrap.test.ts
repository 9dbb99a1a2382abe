import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT, run } from './project.ts';

/** A project like a fresh clone of this one, whose only dependency lies beside it, so that no registry is asked. */
describe('the bootstrap of a fresh clone', () => {
  let root: string;

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'perdure-bootstrap-'));
    await mkdir(join(root, 'scripts'));
    await cp(join(ROOT, 'scripts/bootstrap.mjs'), join(root, 'scripts/bootstrap.mjs'));
    await dependOn('1.0.0');
  });
  afterAll(async () => {
    await rm(root, { recursive: true, force: true });
  });

  test('installs what is missing, then runs the command with its arguments and its exit code', async () => {
    const { code, output } = await run(root, 'node', 'scripts/bootstrap.mjs', 'tool', 'one', '--two');
    expect(output).toMatch(/Installing dependencies .*nothing is installed yet/);
    expect(output).toContain('tool 1.0.0 ["one","--two"]');
    expect(code).toBe(7);
  });

  test('installs nothing when node_modules holds what the lockfile says', async () => {
    const { code, output } = await run(root, 'node', 'scripts/bootstrap.mjs', 'tool');
    expect(output).toBe('tool 1.0.0 []\n');
    expect(code).toBe(7);
  });

  test('installs again when the lockfile asks for another version', async () => {
    await dependOn('1.1.0');
    const { output } = await run(root, 'node', 'scripts/bootstrap.mjs', 'tool');
    expect(output).toMatch(/tool 1\.1\.0 is not installed/);
    expect(output).toContain('tool 1.1.0 []');
  });

  test('says so when the installation fails, and does not run the command', async () => {
    const lock = await readFile(join(root, 'package-lock.json'), 'utf8');
    await writeFile(join(root, 'package-lock.json'), lock.replaceAll('1.1.0', '9.9.9'));
    const { code, output } = await run(root, 'node', 'scripts/bootstrap.mjs', 'tool');
    await writeFile(join(root, 'package-lock.json'), lock);
    expect(code).not.toBe(0);
    expect(output).toMatch(/npm ci failed with code/);
    expect(output).not.toMatch(/^tool /m);
  });

  test('hands a signal on and answers as the command did', async () => {
    const script =
      "process.on('SIGTERM', () => process.exit(42)); console.log('up'); setInterval(() => {}, 1000);";
    const child = spawn(process.execPath, ['scripts/bootstrap.mjs', 'node', '-e', script], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const code = new Promise<number | null>((resolve) => child.on('close', resolve));
    await new Promise<void>((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        if (text.includes('up')) resolve();
      });
    });
    child.kill('SIGTERM');
    expect(await code).toBe(42);
  });

  async function json(path: string, value: unknown): Promise<void> {
    await writeFile(join(root, path), JSON.stringify(value));
  }

  async function dependOn(version: string): Promise<void> {
    await mkdir(join(root, 'tool'), { recursive: true });
    await json('tool/package.json', { name: 'tool', version, bin: { tool: 'tool.js' } });
    await writeFile(
      join(root, 'tool/tool.js'),
      `#!/usr/bin/env node\nconsole.log('tool ${version} ' + JSON.stringify(process.argv.slice(2)));\nprocess.exit(7);\n`,
    );
    expect(await run(root, 'npm', 'pack', './tool')).toMatchObject({ code: 0 });
    const dependencies = { tool: `file:./tool-${version}.tgz` };
    await json('package.json', { name: 'clone', version: '1.0.0', dependencies });
    await rm(join(root, 'package-lock.json'), { force: true });
    const lock = await mkdtemp(join(tmpdir(), 'perdure-lock-'));
    await cp(root, lock, { recursive: true, filter: (path) => !path.includes('node_modules') });
    expect(await run(lock, 'npm', 'install', '--package-lock-only', '--offline')).toMatchObject({ code: 0 });
    await cp(join(lock, 'package-lock.json'), join(root, 'package-lock.json'));
    await rm(lock, { recursive: true });
  }
});
