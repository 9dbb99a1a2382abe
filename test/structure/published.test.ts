import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ROOT, run } from './project.ts';

/** A small package, right in every way; each test makes one thing wrong. */
describe('what is published', () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'perdure-published-'));
    await mkdir(join(root, 'dist'));
    await cp(join(ROOT, 'scripts'), join(root, 'scripts'), { recursive: true });
    await cp(join(ROOT, 'api-extractor.json'), join(root, 'api-extractor.json'));
    await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'), 'junction');
    await write('README.md', '# Small\n');
    await write('LICENSE', 'MIT\n');
    await write('package.json', manifest('./dist/index.d.ts'));
    await write('dist/index.js', 'export const answer = 42;\n');
    await write('dist/index.d.ts', '/** Of everything. */\nexport declare const answer: number;\n');
  });
  afterEach(async () => {
    await rm(root, { recursive: true, force: true });
  });

  test('passes when it is right', async () => {
    expect(await run(root, 'node', 'scripts/api.mjs', '--update')).toMatchObject({ code: 0 });
    expect(await run(root, 'node', 'scripts/api.mjs')).toMatchObject({ code: 0 });
    const { code, output } = await run(root, 'node', 'scripts/package.mjs');
    expect(output).toMatch(/publint and attw content/);
    expect(code).toBe(0);
  });

  test('is refused when the API is not the reviewed one', async () => {
    await run(root, 'node', 'scripts/api.mjs', '--update');
    await write('dist/index.d.ts', '/** Of everything. */\nexport declare const answer: string;\n');
    const { code, output } = await run(root, 'node', 'scripts/api.mjs');
    expect(output).toMatch(/index\.api\.md: differs/);
    expect(code).toBe(1);
  });

  test('is refused when the API shows a type that it does not export', async () => {
    await write(
      'dist/index.d.ts',
      'interface Hidden { a: string }\nexport declare const answer: Hidden;\nexport {};\n',
    );
    const { code, output } = await run(root, 'node', 'scripts/api.mjs', '--update');
    expect(output).toMatch(/ae-forgotten-export.*Hidden/);
    expect(code).toBe(1);
  });

  test('is refused when an entry is empty or was not built', async () => {
    await write('dist/index.d.ts', 'export {};\n');
    expect(await run(root, 'node', 'scripts/api.mjs', '--update')).toMatchObject({ code: 1 });
    await rm(join(root, 'dist/index.d.ts'));
    const { code, output } = await run(root, 'node', 'scripts/api.mjs');
    expect(output).toMatch(/index\.d\.ts: exported, but not built/);
    expect(code).toBe(1);
  });

  test('is refused when the tarball lacks a file', async () => {
    await write('package.json', manifest('./dist/elsewhere.d.ts'));
    const { code, output } = await run(root, 'node', 'scripts/package.mjs');
    expect(output).toMatch(/elsewhere\.d\.ts is not in the tarball/);
    expect(code).toBe(1);
  });

  test('is refused when the types do not resolve for a user', async () => {
    await write('dist/index.d.ts', "export { answer } from './nowhere.js';\n");
    const { code, output } = await run(root, 'node', 'scripts/package.mjs');
    expect(output).toMatch(/attw .* failed/);
    expect(code).toBe(1);
  });

  test('is refused when the code is not the kind of module it says it is', async () => {
    await write('dist/index.js', 'module.exports.answer = 42;\n');
    const { code, output } = await run(root, 'node', 'scripts/package.mjs');
    expect(output).toMatch(/publint .* failed/);
    expect(code).toBe(1);
  });

  function write(path: string, text: string): Promise<void> {
    return writeFile(join(root, path), text);
  }

  function manifest(types: string): string {
    return JSON.stringify({
      name: 'small',
      version: '1.0.0',
      license: 'MIT',
      type: 'module',
      sideEffects: false,
      files: ['dist'],
      exports: { '.': { types, default: './dist/index.js' } },
    });
  }
});
