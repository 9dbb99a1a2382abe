/** What the bench makes of its samples. */
import { expect, test } from 'vitest';
import { interleave, median, medianRatio, steadied } from '../../bench/support/stats.ts';

test('the median of an odd and of an even number of samples, and of none', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([10, 2, 4, 8])).toBe(6);
  expect(() => median([])).toThrow('the median of nothing');
});

test('a ratio is of samples that were taken side by side: a slow phase hits both', () => {
  // Half of the time the machine is ten times slower: the ratio of the medians would say 1.1, or 11.
  expect(medianRatio([11, 110, 22, 220], [10, 100, 20, 200])).toBeCloseTo(1.1);
  expect(medianRatio([3, 20], [1, 10])).toBe(2.5);
  // A round that one of them lacks is none.
  expect(medianRatio([3, Number.NaN, 20, 8], [1, 10, Number.NaN, 2])).toBe(3.5);
  expect(medianRatio([3, 20], [1])).toBe(3);
  expect(medianRatio([Number.NaN], [1])).toBeNaN();
});

test('medians of arms keep their ratio when the machine changes its speed between two of them', () => {
  // The machine becomes twice as slow in round 3, after the first arm and before the second.
  const [slow = [], fast = []] = steadied([
    [10, 10, 10, 20, 20],
    [5, 5, 10, 10, 10],
  ]);
  expect(median(slow) / median(fast)).toBeCloseTo(2);
  // Nothing changes without phases, and zeros stay.
  expect(
    steadied([
      [3, 3, 3],
      [0, 0, 0],
    ]),
  ).toEqual([
    [3, 3, 3],
    [0, 0, 0],
  ]);
  // A round that an arm lacks says nothing about that arm, and serves the others.
  const [whole = [], lacking = []] = steadied([
    [1, 2, 1],
    [4, Number.NaN, 4],
  ]);
  expect(whole).toEqual([1, 1, 1]);
  expect(lacking).toEqual([4, Number.NaN, 4]);
});

test('all arms run in each round, and each of them first as often as the others', async () => {
  const order: string[] = [];
  const arm = (name: string) => (round: number) => Promise.resolve(order.push(`${name}${round}`));
  const samples = await interleave(3, { a: arm('a'), b: arm('b'), c: arm('c') });
  expect(order).toEqual(['a0', 'b0', 'c0', 'b1', 'c1', 'a1', 'c2', 'a2', 'b2']);
  expect(samples).toEqual({ a: [1, 6, 8], b: [2, 4, 9], c: [3, 5, 7] });
});
