/** The summaries of soaks: each has a file of its own, and the newest on each stack is what the docs name. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { keepSoak, lastSoaks } from '../../faults/soaks.ts';
import { resultPath } from '../../faults/table.ts';

test('a second soak of a day, or on another stack, leaves the first', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'soaks-'));
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => {
    vi.useRealTimers();
    rmSync(folder, { recursive: true });
  });
  const keep = (at: string, stack: 'dev' | 'postgres', seconds: number): Promise<string> => {
    vi.setSystemTime(at);
    return keepSoak({ stack, command: 'soak', seconds, planned: 0, results: [], rows: [] }, folder);
  };
  expect(await lastSoaks(folder)).toEqual([]);
  await keep('2026-01-02T03:04:05Z', 'dev', 1);
  await keep('2026-01-02T03:04:05Z', 'postgres', 2);
  await keep('2026-01-02T10:00:00Z', 'dev', 3);
  expect(readdirSync(folder)).toHaveLength(3);
  expect((await lastSoaks(folder)).map(({ stack, seconds }) => [stack, seconds])).toEqual([
    ['dev', 3],
    ['postgres', 2],
  ]);
  await expect(keep('2026-01-02T10:00:00Z', 'dev', 4)).rejects.toThrow('EEXIST');
  expect(resultPath('dev')).not.toBe(resultPath('postgres'));
});
