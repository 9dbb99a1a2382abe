import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { copyProject, type ProjectCopy, run } from './project.ts';

/** One mistake for each static check: a check that lets it through checks nothing. */
describe('each static check refuses a planted mistake', () => {
  let copy: ProjectCopy;

  beforeAll(async () => {
    copy = await copyProject();
    await copy.write(
      'src/workflows/planted-sandbox.ts',
      [
        'export const home: unknown = process.env;',
        'export const bytes: unknown = Buffer.alloc(1);',
        'export const page: unknown = document;',
        "export const answer: unknown = fetch('https://example.com');",
        'export const known: Uint8Array = new TextEncoder().encode("a");',
      ].join('\n'),
    );
    await copy.write(
      'src/agent/planted-promise.ts',
      [
        'async function work(): Promise<number> {',
        '  return await Promise.resolve(1);',
        '}',
        'export function start(): void {',
        '  work();',
        '}',
        "export function name(kind: 'a' | 'b'): string | undefined {",
        '  switch (kind) {',
        "    case 'a':",
        "      return 'first';",
        '  }',
        '  return undefined;',
        '}',
        'export function parse(text: string): number {',
        '  return JSON.parse(text);',
        '}',
      ].join('\n'),
    );
    await copy.write('src/agent/plantedFormat.ts', 'export const text: string = "double"\nvar   old = 1\n');
    await copy.write(
      'src/agent/planted-types.ts',
      [
        'const record: Record<string, string> = {};',
        "export const first: string = record['a'];",
        'export const inferred = Math.max(1, 2);',
        'export enum Kind { One }',
      ].join('\n'),
    );
  });
  afterAll(async () => {
    await copy[Symbol.asyncDispose]();
  });

  test('types: unchecked access, an inferred export, syntax that does not erase', async () => {
    const { code, output } = await run(copy.root, 'tsc', '-p', 'tsconfig.json', '--pretty', 'false');
    expect(code).not.toBe(0);
    expect(output).toMatch(/planted-types\.ts\(2,.*TS2322/);
    expect(output).toMatch(/planted-types\.ts\(3,.*TS9010/);
    expect(output).toMatch(/planted-types\.ts\(4,.*TS1294/);
  });

  test('sandbox: Node and DOM in workflow code, but not what the sandbox has', async () => {
    const { code, output } = await run(
      copy.root,
      'tsc',
      '-p',
      'tsconfig.workflows.json',
      '--pretty',
      'false',
    );
    expect(code).not.toBe(0);
    for (const name of ['process', 'Buffer', 'document', 'fetch']) {
      expect(output).toContain(`Cannot find name '${name}'`);
    }
    expect(output).not.toContain('TextEncoder');
  });

  test('oxlint: rules that need types', async () => {
    const { code, output } = await run(copy.root, 'oxlint', '--deny-warnings');
    expect(code).not.toBe(0);
    for (const rule of ['no-floating-promises', 'switch-exhaustiveness-check', 'no-unsafe-return']) {
      expect(output).toContain(`typescript(${rule})`);
    }
  });

  test('biome: format, file names and lint', async () => {
    const planted = 'src/agent/plantedFormat.ts';
    const { code, output } = await run(copy.root, 'biome', 'ci', '--vcs-enabled=false', planted);
    expect(code).not.toBe(0);
    for (const rule of ['format', 'useFilenamingConvention', 'noUnusedVariables']) {
      expect(output).toContain(rule);
    }
  });

  test('knip: a file that nothing uses', async () => {
    const { code, output } = await run(copy.root, 'knip', '--no-progress', '--include', 'files');
    expect(code).not.toBe(0);
    expect(output).toContain('src/agent/planted-promise.ts');
  });
});
