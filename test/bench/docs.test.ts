/** The figures of the docs are those of the runs that are kept: neither is changed without the other. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { docsOf } from '../../bench/support/docs.ts';

test('the page and its chart say what the newest kept runs measured', async () => {
  const docs = await docsOf();
  expect(docs.size).toBe(2);
  for (const [path, text] of docs)
    expect(await readFile(path, 'utf8'), `npm run bench -- --write-docs writes ${path}`).toBe(text);
});
