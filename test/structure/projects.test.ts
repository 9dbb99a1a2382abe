/** The four projects of the tests: each test file is in exactly one of them. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, run } from './project.ts';

test('each test file is in one project', async () => {
  const { output } = await run(
    ROOT,
    'node',
    'node_modules/vitest/vitest.mjs',
    'list',
    '--filesOnly',
    '--json',
  );
  const listed = JSON.parse(output.slice(output.indexOf('['))) as { file: string; projectName: string }[];
  const files = ['test', 'examples'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => join(ROOT, folder, name)),
  );
  expect(listed.map(({ file }) => file).sort()).toEqual(files.sort());
  expect(new Set(listed.map(({ projectName }) => projectName))).toEqual(
    new Set(['fast', 'live', 'slow', 'apart']),
  );
});
