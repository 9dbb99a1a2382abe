/** The examples in the docstrings of the public API: each is a module that compiles against the doors. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { copyProject, ROOT, run } from './project.ts';

/** Public functions and classes that must have an example. */
const WITH_EXAMPLE = [
  'createArchiveWorker',
  'createHttpApi',
  'createWorker',
  'defineAgent',
  'effectsSince',
  'LangGraphSaver',
  'PerdurePlugin',
  'Pool',
  'runCheckpoint',
  'Sessions',
  'TemporalSaver',
];

interface Example {
  /** What its docstring belongs to. */
  name: string;
  text: string;
}

/** The examples of all docstrings of the sources. */
async function examples(): Promise<Example[]> {
  const found: Example[] = [];
  for (const file of await readdir(join(ROOT, 'src'), { recursive: true })) {
    if (!file.endsWith('.ts')) continue;
    const source = await readFile(join(ROOT, 'src', file), 'utf8');
    for (const [, doc = '', name = ''] of source.matchAll(
      /\/\*\*((?:(?!\*\/)[\s\S])*?@example(?:(?!\*\/)[\s\S])*)\*\/\s*export (?:async |abstract )?(?:function|class|const) (\w+)/g,
    )) {
      const lines = doc.split('\n').map((line) => line.replace(/^ \* ?/, ''));
      const [, text = ''] = /@example\n```ts\n([\s\S]*?)\n```/.exec(lines.join('\n')) ?? [];
      found.push({ name, text });
    }
  }
  return found;
}

async function compile(all: readonly Example[]): Promise<{ code: number; output: string }> {
  await using copy = await copyProject();
  for (const { name, text } of all) await copy.write(`examples/${name}.ts`, `${text}\nexport {};\n`);
  const lib = { lib: ['es2023', 'dom', 'esnext.disposable'], isolatedDeclarations: false };
  const config = { extends: '../tsconfig.json', compilerOptions: lib, include: ['*.ts', '../types'] };
  await copy.write('examples/tsconfig.json', JSON.stringify(config));
  return await run(copy.root, 'tsc', '-p', 'examples/tsconfig.json');
}

test('every example of a docstring compiles, and the main functions have one', async () => {
  const all = await examples();
  expect(all.map(({ name }) => name)).toEqual(expect.arrayContaining(WITH_EXAMPLE));
  expect(await compile(all)).toEqual({ code: 0, output: '' });
});

test('an example that names what no door exports is refused', async () => {
  const { code, output } = await compile([
    { name: 'planted', text: "import { nobodyExportsThis } from 'perdure';\nnobodyExportsThis();" },
  ]);
  expect(code).not.toBe(0);
  expect(output).toContain('nobodyExportsThis');
});
