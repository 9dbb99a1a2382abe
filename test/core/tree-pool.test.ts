/** Every interleaving of a session, its sub-agent and the pool that they share. */
import { expect, test } from 'vitest';
import { draw } from '../../src/pool/pool-state.ts';
import { type Draw, walkTree } from './checker/tree.ts';

/** Too little for both to hold what they would like to, and enough for the first model call. */
const TIGHT = 700;

test('a tree keeps its cap, comes to its end, and its pool has what it has used, whatever is lost', () => {
  const walks = [100_000, TIGHT].map((tokens) => walkTree({ tokens, faults: 1 }));
  for (const { broken } of walks) expect(broken).toBeNull();
  const happened = new Set(walks.flatMap((walk) => [...walk.happened]));
  expect([...happened]).toEqual(expect.arrayContaining(EVERYTHING));
  expect(walks.reduce((sum, { states }) => sum + states, 0)).toBeGreaterThan(500);
});

test.each<[string, Draw, RegExp]>([
  [
    'counts a request twice whose answer was lost',
    (pool, request, now) => {
      const known = pool.holders[request.sessionId];
      if (known !== undefined) known.spent = request.settled;
      return draw(pool, request, now);
    },
    /dies with the pool's answer\n(.*\n)*the tree has used 180 tokens, the pool says 240/,
  ],
  [
    'loses what a session reports when it gives back',
    (pool, request, now) =>
      draw(pool, request.need === undefined ? { ...request, spent: request.settled } : request, now),
    /the tree has used 180 tokens, the pool says/,
  ],
])('the checker notices a pool that %s', (_, planted, broken) => {
  expect(walkTree({ tokens: TIGHT, faults: 1 }, planted).broken).toMatch(broken);
});

/** What must have happened in some walk: a world in which less happens proves less. */
const EVERYTHING = [
  'the parent draws',
  'the parent gives back',
  'the child draws',
  'the child gives back',
  'a worker of the parent dies, and what it has sent to the pool is late',
  'a worker of the child dies, and what it has sent to the pool is late',
  "a worker of the parent dies with the pool's answer",
  "a worker of the child dies with the pool's answer",
  'the parent hears nothing of the pool',
  'the child hears nothing of the pool',
  'what was sent late arrives',
  'a model call of the parent is lost',
  'a model call of the child is lost',
  'the start of the child is lost',
  'the child reports',
  'a person raises the caps',
];
