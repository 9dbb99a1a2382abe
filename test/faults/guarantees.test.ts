/** The page of the guarantees: what it says is of the run that is kept, and what its numbers count. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { guarantees, isTableKept, tableOf } from '../../faults/guarantees.ts';
import type { Outcome, RunResult } from '../../faults/run.ts';
import type { Story, ToolKind } from '../../faults/story.ts';

const kept = isTableKept();

test.skipIf(!kept)(
  `the page says what the kept run came to${kept ? '' : ', skipped: none is kept; npm run faults -- --write-table keeps one'}`,
  async () => {
    const { path, text } = await guarantees();
    expect(await readFile(path, 'utf8'), `npm run faults -- --write-page writes ${path}`).toBe(text);
  },
);

test('the gap counts mutations, one for the two sessions of a global effect', () => {
  const outcome = (kind: ToolKind, landed: number): Outcome => ({
    kind,
    landed,
    duplicates: 0,
    losses: 0,
    gap: 0,
    repeats: 0,
    toPerson: 0,
    goOnMs: [],
  });
  const run = (point: string, step: Story['step'], keys: Story['keys']): RunResult => ({
    story: {
      point,
      step,
      keys,
      kinds: [],
      turns: 1,
      strike: 1,
      messages: false,
      stack: 'dev',
      workers: 1,
      seed: 1,
    },
    ms: 1,
    evidence: null,
    outcomes: [
      outcome('read', 1),
      outcome('idempotent', 1),
      outcome('mutate', 1),
      outcome('blind', 0),
      outcome('global', 2),
    ],
    breaches: [],
    allowed: [],
    observed: { story: {} as Story, sessions: [], effects: {}, rows: [], model: [], error: null },
    unclosed: null,
  });
  const results = [
    run('worker-freeze', 'gap', 'ignored'),
    run('worker-freeze', 'gap', 'honoured'),
    run('worker-freeze', 'landed', 'ignored'),
    run('worker-kill', 'gap', 'ignored'),
  ];
  expect(tableOf({ command: 'a run', results, rows: [] })).toEqual({
    command: 'a run',
    runs: 4,
    failed: [],
    gapStruck: 2,
    rows: [],
  });
});
