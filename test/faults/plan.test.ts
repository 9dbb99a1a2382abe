/** Which stories a run of the lab tells. */
import { expect, test } from 'vitest';
import { quickPlan, soakPlan, tellable, whyNot } from '../../faults/plan.ts';
import { POINTS } from '../../faults/points/index.ts';
import type { FaultPoint } from '../../faults/points/point.ts';
import { KINDS, STACKS } from '../../faults/story.ts';

const point: FaultPoint = {
  name: 'a',
  about: 'A fault.',
  steps: ['in-call', 'gap', 'verifying'],
  soakSteps: ['between-turns'],
  inject: () => Promise.resolve(undefined),
};
const dev = tellable(POINTS, {});

test('a seed tells the same stories again, another one others', () => {
  for (const plan of [
    (seed: number) => quickPlan(dev, { seed }, false),
    (seed: number) => soakPlan(dev, { seed }, 200),
  ]) {
    expect(plan(7)).toEqual(plan(7));
    expect(plan(7)).not.toEqual(plan(8));
  }
});

test('a quick run strikes at each point and step, and with both services where it makes a difference', () => {
  const told = quickPlan([point], { seed: 1 }, false).map(({ step, keys }) => `${step} ${keys}`);
  expect(told).toEqual(['in-call ignored', 'gap honoured', 'gap ignored', 'verifying honoured']);
  expect(quickPlan([point], { seed: 1 }, true)).toHaveLength(6);
  const all = quickPlan(dev, { seed: 1 }, false).map(({ point: name, step }) => `${name}@${step}`);
  expect(new Set(all)).toEqual(
    new Set(dev.flatMap(({ name, steps }) => steps.map((step) => `${name}@${step}`))),
  );
});

test('a step of soaks is told when it is asked for by name', () => {
  const only = ['a@between-turns'];
  const told = quickPlan([point], { seed: 1, only }, true);
  expect(told.map(({ step, seed }) => [step, seed])).toEqual([
    ['between-turns', 1],
    ['between-turns', 1],
  ]);
});

test('a soak strikes as many sessions as are asked for, and both services', () => {
  const told = soakPlan(dev, { seed: 3 }, 1_000);
  const struck = told.reduce((sum, { kinds }) => sum + kinds.length, 0);
  expect(struck).toBeGreaterThanOrEqual(1_000);
  expect(struck).toBeLessThan(1_000 + KINDS.length);
  expect(new Set(told.map(({ keys }) => keys)).size).toBe(2);
  expect(soakPlan([], { seed: 3 }, 1_000)).toEqual([]);
});

test('a soak of 1,000 sessions goes to each step of each point', () => {
  for (const stack of STACKS) {
    const points = POINTS.filter(({ needs = stack }) => needs === stack);
    const pairs = points.flatMap(({ name, steps, soakSteps = [] }) =>
      [...steps, ...soakSteps].map((step) => `${name}@${step}`),
    );
    const told = soakPlan(points, { seed: 3, stack }, 1_000).map(
      ({ point: name, step }) => `${name}@${step}`,
    );
    expect(new Set(told)).toEqual(new Set(pairs));
  }
});

test('the turn that is struck is one that the session has', () => {
  for (const { turns, strike, step } of soakPlan(dev, { seed: 5 }, 2_000)) {
    expect(strike).toBeGreaterThanOrEqual(1);
    expect(strike, step).toBeLessThanOrEqual(turns);
  }
  const second = quickPlan([point], { seed: 5, turns: 2, strike: 2 }, true);
  expect(second.map(({ turns, strike }) => [turns, strike])).toEqual(second.map(() => [2, 2]));
});

test('a fault that needs another server, or what this machine lacks, says so', () => {
  const needs: FaultPoint = { ...point, needs: 'postgres' };
  const missing: FaultPoint = { ...point, missing: () => 'it needs a small disk' };
  expect(whyNot(needs, 'dev')).toBe('it needs --stack postgres');
  expect(whyNot(missing, 'dev')).toBe('it needs a small disk');
  expect(tellable([point, needs, missing], {})).toEqual([point]);
  expect(tellable([point, needs, missing], { stack: 'postgres' })).toEqual([point, needs]);
});
