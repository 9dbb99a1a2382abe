/** What the bench is told, read before it compiles or starts anything. */
import { expect, test } from 'vitest';
import { MEASURES, readOptions, USAGE } from '../../bench/options.ts';

test('nothing means all measures and all peers', () => {
  expect(readOptions([])).toMatchObject({ what: 'all', only: MEASURES, peers: undefined, quick: false });
});

test('some measures and some peers', () => {
  const args = ['--only', 'turns,peers', '--peers', 'floor,dbos', '--quick'];
  expect(readOptions(args)).toMatchObject({
    what: 'turns-peers',
    only: ['turns', 'peers'],
    peers: ['floor', 'dbos'],
    quick: true,
  });
});

test.each([
  [['--only', 'turns,tunrs'], '--only tunrs: there is no such one; write some of turns,bytes'],
  [['--only', ''], '--only : there is no such one'],
  [['--only', 'peers', '--peers', 'dobs'], '--peers dobs: there is no such one; write some of perdure,floor'],
  [['--only', 'turns', '--peers', 'dbos'], '--peers: only the measure peers has some'],
  [['--only', 'long', '--turns', '5'], '--turns 5: write a whole number from 120'],
  [['--only', 'turns', '--turns', '500'], '--turns: only the measure long has a length'],
  [['--onyl', 'turns'], "Unknown option '--onyl'"],
  [['turns'], "Unexpected argument 'turns'"],
])('%j is refused in a line', (args, words) => {
  expect(() => readOptions(args)).toThrow(words);
  expect(() => readOptions(args)).toThrow(/^[^\n]*$/);
});

test('the usage names each measure', () => {
  for (const measure of MEASURES) expect(USAGE).toContain(measure);
});
