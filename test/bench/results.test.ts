/** Result files: none is written over, and what could not be taken is missed. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Machine } from '../../bench/support/machine.ts';
import { type Line, table, verdict, writeResults } from '../../bench/support/report.ts';
import { readResults } from '../../bench/support/results.ts';

const machine: Machine = {
  perdure: '0.0.0',
  commit: 'abc',
  node: 'v20',
  temporalSdk: '1',
  temporalServer: '1',
  ai: '6',
  cpu: 'one',
  cores: 1,
  memoryGb: 1,
  os: 'linux',
  loadBefore: 0.5,
};
const failed: Line = { measure: 'm', what: 'w', value: Number.NaN, unit: 'x', target: { atMost: 1.1 } };

test('a second run of a day has a file of its own', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const first = await writeResults(folder, 'all', machine, [failed]);
  while (new Date().toISOString() <= readResults(await readFile(first, 'utf8')).at);
  const second = await writeResults(folder, 'all', machine, []);
  expect((await readdir(folder)).length).toBe(2);
  expect(second > first).toBe(true);
  expect(second).toMatch(/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z-all\.json$/);
});

test('a figure that could not be taken misses its target, also when it is read back', async () => {
  expect(verdict(failed)).toBe('MISSED');
  expect(table([failed])).toContain('MISSED');
  const folder = await mkdtemp(join(tmpdir(), 'perdure-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = await writeResults(folder, 'all', machine, [failed]);
  const [line] = readResults(await readFile(path, 'utf8')).results;
  expect(line).toMatchObject({ value: Number.NaN, verdict: 'MISSED' });
  expect(line && verdict(line)).toBe('MISSED');
});
