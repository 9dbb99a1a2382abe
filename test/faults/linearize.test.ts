/** The linearizability check, on ledgers that were planted. */
import { expect, test } from 'vitest';
import { type Claim, unexplained } from '../../faults/linearize.ts';

const open = (who: string, invokedAt: number, respondedAt: number | null = null): Claim => ({
  who,
  invokedAt,
  respondedAt,
  claim: { kind: 'open' },
});
const landed = (who: string, invokedAt: number, respondedAt: number, receipt: string): Claim => ({
  who,
  invokedAt,
  respondedAt,
  claim: { kind: 'landed', receipt },
});
const absent = (who: string, at: number): Claim => ({
  who,
  invokedAt: at,
  respondedAt: at,
  claim: { kind: 'absent' },
});

test('one dispatch, one row, one claim', () => {
  expect(unexplained([open('d1', 0, 100), landed('s', 0, 100, 're_1')], [{ id: 're_1', at: 50 }])).toBeNull();
});

test('nothing was asked and nothing happened', () => {
  expect(unexplained([], [])).toBeNull();
  expect(unexplained([open('d1', 0), absent('d1', 40)], [])).toBeNull();
});

test('absent, and then the next dispatch lands', () => {
  const claims = [absent('d1', 100), open('d2', 100, 200), landed('s', 0, 200, 're_1')];
  expect(unexplained(claims, [{ id: 're_1', at: 150 }])).toBeNull();
});

test('two sessions share one effect, and a third dispatch never had an answer', () => {
  const claims = [open('d1', 0), landed('a', 0, 90, 're_1'), landed('b', 10, 120, 're_1')];
  expect(unexplained(claims, [{ id: 're_1', at: 60 }])).toBeNull();
});

test.each([
  [
    'two rows',
    [open('d1', 0, 100), landed('s', 0, 100, 're_1')],
    [
      { id: 're_1', at: 50 },
      { id: 're_2', at: 70 },
    ],
  ],
  ['a claim without its row', [open('d1', 0, 100), landed('s', 0, 100, 're_1')], []],
  ['a claim of another row', [open('d1', 0, 100), landed('s', 0, 100, 're_9')], [{ id: 're_1', at: 50 }]],
  ['a row after its claim', [open('d1', 0, 100), landed('s', 0, 100, 're_1')], [{ id: 're_1', at: 500 }]],
  [
    'a row before anybody asked',
    [open('d1', 100, 200), landed('s', 100, 200, 're_1')],
    [{ id: 're_1', at: 50 }],
  ],
  ['a row before it was said to be absent', [open('d1', 0, 90), absent('d1', 100)], [{ id: 're_1', at: 50 }]],
  ['a row that only an absent dispatch can have made', [absent('d1', 100)], [{ id: 're_1', at: 150 }]],
  [
    'two sessions with a receipt each',
    [open('d1', 0, 100), landed('a', 0, 100, 're_1'), landed('b', 0, 100, 're_2')],
    [{ id: 're_1', at: 50 }],
  ],
])('not one effect: %s', (_, claims, rows) => {
  expect(unexplained(claims, rows)).toEqual(expect.any(String));
});
