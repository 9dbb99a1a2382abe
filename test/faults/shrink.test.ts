/** The shrinker: the smallest story that still fails, and few stories told for it. */
import { expect, test } from 'vitest';
import type { Breach, Finding } from '../../faults/judge.ts';
import { shrink } from '../../faults/shrink.ts';
import { commandOf, KINDS, type Story } from '../../faults/story.ts';
import { failures } from '../../faults/telling.ts';

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

test('an error is the same failure only where its words are', async () => {
  const error = (text: string): string[] => {
    const finding: Finding = { breach: 'error', kind: null, text, allowed: null };
    return failures({ breaches: [finding, { ...finding, breach: 'stuck' }] });
  };
  const stood = error('Error: run-12-3-mutate-1: {"phase":"idle"}\n    at until (stage.ts:239)');
  expect(stood).toEqual(['error: Error: session: ', 'stuck']);
  expect(error('Error: run-99-41-blind-1: {"phase":"acting"}\n    at rest')).toEqual(stood);
  expect(error('Error: worker 4711 is still there')).toEqual(error('Error: worker 12 is still there'));
  const late = error('Error: the fault was not brought about in 180 s').slice(0, 1);
  expect(late).not.toEqual(stood.slice(0, 1));
  const told = { story, broke: error('Error: worker 4711 is still there').slice(0, 1) };
  expect(await shrink(told, () => Promise.resolve(late))).toBeNull();
});
