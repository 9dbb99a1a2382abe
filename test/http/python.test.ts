import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MemorySaver } from '../../src/index.ts';
import { openApi, type ServedApi } from './support/api.ts';

const hasPython = spawnSync('python3', ['--version']).status === 0;

let api: ServedApi;
const saver = new MemorySaver();
beforeAll(async () => {
  api = await openApi(saver);
});
afterAll(() => api.close());

async function snippet(): Promise<string> {
  const guide = await readFile(new URL('../../docs/http.md', import.meta.url), 'utf8');
  const [, code] = /```python\n([\s\S]*?)```/.exec(guide) ?? [];
  return code ?? '';
}

test.skipIf(!hasPython)('the snippet of the guide runs, twice, and stores once', async () => {
  for (let run = 0; run < 2; run++) {
    const child = spawn('python3', ['-'], {
      env: { ...process.env, PERDURE_URL: api.url, PERDURE_HTTP_TOKEN: api.token },
    });
    child.stdin.end(await snippet());
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number]>,
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe("{'turn': 2} [{'turn': 1}, {'turn': 0}]\n");
  }
  const stored = await saver.list('support/customer 7');
  expect(stored.map(({ id }) => id)).toEqual(['turn-2', 'turn-1', 'turn-0']);
  expect(stored[0]).toMatchObject({ parent_id: 'turn-1', metadata: { by: 'my harness' } });
});
