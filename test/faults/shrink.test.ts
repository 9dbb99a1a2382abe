/** The shrinker: the smallest story that still fails, and few stories told for it. */
import { expect, test } from 'vitest';
import type { Breach } from '../../faults/judge.ts';
import { shrink } from '../../faults/shrink.ts';
import { commandOf, KINDS, type Story } from '../../faults/story.ts';

const story: Story = {
  point: 'worker-kill',
  step: 'landed',
  keys: 'ignored',
  kinds: KINDS,
  turns: 2,
  strike: 2,
  messages: true,
  stack: 'dev',
  workers: 1,
  seed: 7,
};

const first = { story, broke: ['loss', 'budget'] as const };
const broken = (yes: boolean): Promise<Breach[]> => Promise.resolve(yes ? ['loss'] : []);

test('what fails for one kind alone shrinks to that kind, one turn and silence', async () => {
  const smallest = await shrink(first, ({ kinds }) => broken(kinds.includes('blind')));
  expect(smallest).toMatchObject({ kinds: ['blind'], turns: 1, strike: 1, messages: false });
  expect(commandOf(smallest ?? story)).toBe(
    'npm run faults -- --only worker-kill@landed --keys ignored --kinds blind --turns 1 --strike 1 --quiet --seed 7',
  );
});

test('what needs the second turn keeps it', async () => {
  const smallest = await shrink(first, ({ turns, kinds }) => broken(turns === 2 && kinds.includes('mutate')));
  expect(smallest).toMatchObject({ kinds: ['mutate'], turns: 2 });
});

test('the budget is kept', async () => {
  let told = 0;
  const same = await shrink(
    first,
    () => {
      told += 1;
      return broken(told === 1);
    },
    5,
  );
  expect(same).toEqual(story);
  expect(told).toBe(5);
});

test('what does not fail again is not cut', async () => {
  expect(await shrink(first, () => broken(false))).toBeNull();
});

test('what fails in another way is another story', async () => {
  const tell = ({ kinds, messages }: Story): Promise<Breach[]> =>
    Promise.resolve(
      kinds.length < KINDS.length ? ['stuck'] : messages ? ['budget', 'stuck'] : ['stuck', 'loss'],
    );
  const smallest = await shrink(first, tell, 100);
  expect(smallest).toEqual({ ...story, turns: 1, strike: 1, messages: false });
});
