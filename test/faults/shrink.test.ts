/** The shrinker: the smallest story that still fails, and few stories told for it. */
import { expect, test } from 'vitest';
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

test('what fails for one kind alone shrinks to that kind, one turn and silence', async () => {
  const smallest = await shrink(story, ({ kinds }) => Promise.resolve(kinds.includes('blind')));
  expect(smallest).toMatchObject({ kinds: ['blind'], turns: 1, strike: 1, messages: false });
  expect(commandOf(smallest ?? story)).toBe(
    'npm run faults -- --only worker-kill@landed --keys ignored --kinds blind --turns 1 --strike 1 --quiet --seed 7',
  );
});

test('what needs the second turn keeps it', async () => {
  const smallest = await shrink(story, ({ turns, kinds }) =>
    Promise.resolve(turns === 2 && kinds.includes('mutate')),
  );
  expect(smallest).toMatchObject({ kinds: ['mutate'], turns: 2 });
});

test('the budget is kept', async () => {
  let told = 0;
  const same = await shrink(
    story,
    () => {
      told += 1;
      return Promise.resolve(told === 1);
    },
    5,
  );
  expect(same).toEqual(story);
  expect(told).toBe(5);
});

test('what does not fail again is not cut', async () => {
  expect(await shrink(story, () => Promise.resolve(false))).toBeNull();
});
