import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, run } from './project.ts';

const file = (status: string, ...statuses: string[]): object => ({
  name: 'a.test.ts',
  status,
  message: '',
  assertionResults: statuses.map((each) => ({ title: 't', status: each })),
});

test.each([
  ['all well', true, [file('passed', 'passed', 'passed'), file('passed', 'passed')], '3 passed, 0 failed', 0],
  ['a failure', false, [file('failed', 'passed', 'failed')], '1 passed, 1 failed', 1],
  ['skipped ones', true, [file('passed', 'passed', 'skipped', 'todo')], '1 passed, 0 failed, 2 skipped', 0],
  ['a file that does not load', false, [file('passed', 'passed'), file('failed')], '1 passed, 1 failed', 1],
  ['an error outside any test', false, [file('passed', 'passed')], '1 passed, 1 failed', 1],
  ['nothing at all', true, [], '0 passed, 1 failed', 1],
])('the count of a run with %s', async (_name, success, testResults, line, code) => {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-tally-'));
  try {
    const path = join(folder, 'report.json');
    await writeFile(path, JSON.stringify({ success, testResults }));
    expect(await run(ROOT, 'node', 'scripts/tally.mjs', path)).toEqual({ code, output: `${line}\n` });
  } finally {
    await rm(folder, { recursive: true });
  }
});
