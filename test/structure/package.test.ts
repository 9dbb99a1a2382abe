import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './project.ts';

interface Package {
  readonly scripts: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}
interface Lock {
  readonly packages: Readonly<
    Record<
      string,
      { readonly version?: string; readonly optionalDependencies?: Readonly<Record<string, string>> }
    >
  >;
}

async function read<Shape>(path: string): Promise<Shape> {
  return JSON.parse(await readFile(join(ROOT, path), 'utf8')) as Shape;
}

const { scripts, bin, exports } = await read<Package>('package.json');

describe('package.json', () => {
  test('has every script that the documents tell people to run', async () => {
    const docs = (await readdir(join(ROOT, 'docs'), { recursive: true }).catch(() => [])).map(
      (name) => `docs/${name}`,
    );
    const pages = ['README.md', 'CONTRIBUTING.md', 'AGENTS.md', ...docs].filter((path) =>
      path.endsWith('.md'),
    );
    const told = new Map<string, string>();
    for (const page of pages) {
      const text = await readFile(join(ROOT, page), 'utf8');
      for (const [, script = ''] of text.matchAll(/\bnpm run ([\w:-]+)/g)) told.set(script, page);
      if (/\bnpm test\b/.test(text)) told.set('test', page);
    }
    expect(told.size).toBeGreaterThanOrEqual(5);
    for (const [script, page] of told)
      expect(scripts, `npm run ${script}, told in ${page}`).toHaveProperty([script]);
  });

  test('runs files that exist', () => {
    const files = Object.values(scripts).flatMap((line) => line.match(/\b[\w/-]+\.(?:ts|mjs)\b/g) ?? []);
    expect(files).toContain('scripts/bootstrap.mjs');
    for (const file of files) expect(existsSync(join(ROOT, file)), file).toBe(true);
  });

  test('exports and runs what the sources build', () => {
    const built = [bin, exports]
      .flatMap((entry) => Object.values(entry))
      .flatMap((entry) => (typeof entry === 'string' ? [entry] : [entry.types, entry.default]));
    const fromDist = built.filter((path) => path.startsWith('./dist/'));
    expect(fromDist.length).toBeGreaterThanOrEqual(5);
    for (const path of fromDist) {
      const source = path.replace('./dist/', 'src/').replace(/(\.d\.ts|\.js)$/, '.ts');
      expect(existsSync(join(ROOT, source)), `${path} is built from ${source}`).toBe(true);
    }
  });
});

test('package-lock.json holds the optional packages of every platform, or npm ci refuses it', async () => {
  const { packages } = await read<Lock>('package-lock.json');
  let checked = 0;
  for (const [path, { optionalDependencies = {} }] of Object.entries(packages)) {
    for (const name of Object.keys(optionalDependencies)) {
      const places = [`${path}/node_modules/${name}`, `node_modules/${name}`];
      expect(
        places.some((place) => packages[place]?.version !== undefined),
        `${name}, for ${path}`,
      ).toBe(true);
      checked += 1;
    }
  }
  expect(checked).toBeGreaterThan(50);
});
