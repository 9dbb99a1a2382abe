/** The lab's command line: what its words fix, and that a wrong one is refused with what to write. */
import { expect, test } from 'vitest';
import { HELP, OptionError, readOptions } from '../../faults/options.ts';
import { quickPlan, soakPlan } from '../../faults/plan.ts';
import { POINTS } from '../../faults/points/index.ts';
import { replyLost } from '../../faults/points/reply-lost.ts';
import { workerKill } from '../../faults/points/worker-kill.ts';
import { BACKGROUND, commandOf, ROLLING, STACKS, STEPS, type Step, TREE } from '../../faults/story.ts';

const read = (line: string): ReturnType<typeof readOptions> =>
  readOptions(line === '' ? [] : line.split(' '), 1_234_567);

test('a run by itself, and a story', () => {
  expect(read('')).toEqual({
    fixed: { seed: 34_567 },
    soak: null,
    writeTable: false,
    writePage: false,
    help: false,
  });
  expect(
    read('--only a@gap,b --keys ignored --kinds mutate,blind --turns 2 --strike 2 --quiet --seed 0').fixed,
  ).toEqual({
    seed: 0,
    only: ['a@gap', 'b'],
    keys: 'ignored',
    kinds: ['mutate', 'blind'],
    turns: 2,
    strike: 2,
    messages: false,
  });
  expect(read('--write-table --seed 41').writeTable).toBe(true);
  expect(read('--write-page').writePage).toBe(true);
});

test('help is printed, and asks for nothing else', () => {
  expect(read('--help')).toMatchObject({ help: true, soak: null, writeTable: false });
  expect(HELP).toContain('--only <points>            Some points, or one step of a point');
});

test.each<[string, number]>([
  ['--soak', 1_000],
  ['--soak --quiet', 1_000],
  ['--quiet --soak', 1_000],
  ['--soak 20', 20],
  ['--soak=20', 20],
])('%s', (line, soak) => {
  expect(read(line).soak).toBe(soak);
});

test.each<[string, string]>([
  ['--soak abc', '--soak abc: write a whole number from 1'],
  ['--soak 0', '--soak 0: write a whole number from 1'],
  ['--seed x', '--seed x: write a whole number from 0'],
  ['--turns 0', '--turns 0: write a whole number from 1 to 16'],
  ['--strike 9', '--strike 9: write a whole number from 1 to 2'],
  ['--turns 1 --strike 2', '--strike 2: write a whole number from 1 to 1'],
  ['--workers x', '--workers x: write a whole number from 1 to 16'],
  ['--workers 1.5', '--workers 1.5'],
  ['--keys some', '--keys some: write honoured or ignored'],
  ['--kinds mutate,none', '--kinds none: write read or'],
  ['--stack none', '--stack none: write dev or postgres'],
  ['--messages --quiet', '--messages and --quiet: leave one of them out'],
  ['--fast', "Unknown option '--fast'"],
  ['worker-kill', "Unexpected argument 'worker-kill'"],
  ['--only signals --write-table', '--write-table: the page is of all faults; leave --only out'],
  ['--soak --write-table', '--write-table: the page is of all faults; leave --soak out'],
])('%s is refused', (line, words) => {
  expect(() => read(line)).toThrow(OptionError);
  expect(() => read(line)).toThrow(words);
});

test('the command that is printed beside a story tells it, and no other one', () => {
  for (const stack of STACKS)
    for (const workers of [1, 4])
      for (const seed of [1, 2]) {
        const given = { seed, stack, workers };
        for (const story of [...quickPlan(POINTS, given, true), ...soakPlan(POINTS, given, 1_000)]) {
          const [, words = ''] = commandOf(story).split(' -- ');
          expect(quickPlan(POINTS, read(words).fixed, false)).toEqual([story]);
        }
      }
});

test('no story is told of kinds that its fault cannot strike', () => {
  const fixed = { seed: 1, kinds: ['read'] } as const;
  expect(quickPlan([replyLost], fixed, true)).toEqual([]);
  expect(soakPlan([replyLost], fixed, 10)).toEqual([]);
  const told = soakPlan([workerKill, replyLost], fixed, 10);
  expect(told.map(({ kinds }) => kinds)).toEqual(Array.from({ length: 10 }, () => ['read']));
});

test('a soak goes through every step with a point that is not tied to some', () => {
  const everywhere = [
    'worker-kill',
    'worker-freeze',
    'two-workers',
    'server-kill',
    'database-kill',
    'store-full',
    'server-wire',
    'deploy',
    'deploy-code',
  ];
  for (const point of POINTS.filter(({ name }) => everywhere.includes(name))) {
    const told = soakPlan([point], { seed: 1 }, 1_000);
    const strikesTrees = ['worker-kill', 'worker-freeze', 'server-kill'].includes(point.name);
    // In a new run, a session may take the changed code.
    const left = [
      ...(point.name === 'deploy-code' ? ROLLING : []),
      ...(strikesTrees ? [] : [...TREE, ...BACKGROUND].filter((step) => !point.steps.includes(step))),
    ];
    const all = (Object.keys(STEPS) as Step[]).filter((step) => !left.includes(step));
    expect(new Set(told.map(({ step }) => step)), point.name).toEqual(new Set(all));
    const recovery = told.filter(({ step }) => step === 'verifying' || step === 'verified');
    for (const { kinds } of recovery) expect(kinds).toEqual(['mutate', 'global']);
  }
});
