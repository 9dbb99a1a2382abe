/** The demo's own check: it must see what is not as claimed. */
import { describe, expect, test } from 'vitest';
import { claims, type Evidence } from '../../examples/demo/evidence.ts';
import type { SessionState, ToolCall } from '../../src/index.ts';

const ARGS = { chargeId: 'ch_1002', cents: 12_900, reason: 'broken' };
const ROW = { id: 're_1', at: '2026-01-05T10:00:02.000Z', kind: 'refund', key: 'key-1', args: ARGS } as const;

const REFUND: ToolCall = {
  id: 'call_2_0',
  turn: 2,
  message: 1,
  name: 'refund',
  args: ARGS,
  argsDigest: 'digest',
  effect: 'mutate',
  scope: 'session',
  idempotencyKey: 'key-1',
  status: { kind: 'completed' },
  issuedAt: '2026-01-05T10:00:01.000Z',
  completedAt: '2026-01-05T10:00:05.000Z',
  dispatches: [{ no: 1, at: '2026-01-05T10:00:01.000Z', outcome: 'landed' }],
  decision: { decision: 'approve', by: 'ada', at: '2026-01-05T10:00:01.000Z' },
  resolutions: [],
  result: { content: { ...ARGS, id: 're_1', at: ROW.at }, isError: false },
  replayOf: null,
};
const line = (digest: string) => ({
  at: '2026-01-05T10:00:00.000Z',
  model: 'm',
  digest,
  assistantCount: 0,
  outcome: 'reply',
});

/** What a good run leaves; the check reads the parts of the state that are here. */
function evidence(changes: Partial<Evidence> = {}, call: Partial<ToolCall> = {}): Evidence {
  return {
    ledger: [ROW],
    state: {
      calls: [{ ...REFUND, ...call }],
      status: { kind: 'completed', at: '2026-01-05T10:00:06.000Z', text: 'Refunded.' },
      budget: { spent: { turns: 3 } },
    } as SessionState,
    ranBy: [
      { kind: 'tool', callId: 'call_1_0', identity: '11@host' },
      { kind: 'tool', callId: 'call_2_0', identity: '11@host' },
      { kind: 'verify', callId: 'call_2_0', identity: '22@host' },
    ],
    killedPid: 11,
    nextPid: 22,
    modelRecord: [line('a'), line('b'), line('c')],
    ...changes,
  };
}

const failing = (given: Evidence): string[] =>
  claims(given)
    .filter(({ holds }) => !holds)
    .map(({ text }) => text);

test('a good run holds every claim', () => {
  expect(claims(evidence())).toHaveLength(6);
  expect(failing(evidence())).toEqual([]);
});

test('with a real model there is no record to count', () => {
  expect(claims(evidence({ modelRecord: null }))).toHaveLength(5);
});

describe.each<[string, Evidence, RegExp]>([
  ['a second row in the ledger', evidence({ ledger: [ROW, { ...ROW, id: 're_2' }] }), /one row .*it has 2/],
  ['an empty ledger', evidence({ ledger: [] }), /one row .*it has 0/],
  ['a row with another key', evidence({ ledger: [{ ...ROW, key: 'key-2' }] }), /one row/],
  ['a row of other cents', evidence({ ledger: [{ ...ROW, args: { ...ARGS, cents: 1 } }] }), /one row/],
  [
    'a result that names another row',
    evidence({}, { result: { content: { id: 're_9' }, isError: false } }),
    /one row/,
  ],
  ['a refund that nobody approved', evidence({}, { decision: null }), /approval/],
  ['a refund issued before its approval', evidence({}, { issuedAt: '2026-01-05T10:00:00.000Z' }), /approval/],
  [
    'a result that came without verify',
    evidence({}, { dispatches: [{ no: 1, at: '', outcome: 'returned' }] }),
    /verify found .*returned/,
  ],
  [
    'a second dispatch',
    evidence(
      {},
      {
        dispatches: [
          { no: 1, at: '', outcome: 'absent' },
          { no: 2, at: '', outcome: 'landed' },
        ],
      },
    ),
    /dispatches: 2/,
  ],
  [
    'a verify by the killed worker',
    evidence({
      ranBy: [
        { kind: 'tool', callId: 'call_2_0', identity: '11@host' },
        { kind: 'verify', callId: 'call_2_0', identity: '11@host' },
      ],
    }),
    /looked for it/,
  ],
  [
    'a killed worker that has only looked the order up',
    evidence({
      ranBy: [
        { kind: 'tool', callId: 'call_1_0', identity: '11@host' },
        { kind: 'tool', callId: 'call_2_0', identity: '22@host' },
        { kind: 'verify', callId: 'call_2_0', identity: '22@host' },
      ],
    }),
    /sent the refund/,
  ],
  [
    'a reply that was paid for twice',
    evidence({ modelRecord: [line('a'), line('b'), line('b')] }),
    /paid for once/,
  ],
  [
    'a reply too many',
    evidence({ modelRecord: [line('a'), line('b'), line('c'), line('d')] }),
    /endpoint gave 4/,
  ],
  ['no reply at all', evidence({ modelRecord: [] }), /endpoint gave 0/],
])('it sees %s', (_name, given, expected) => {
  test('and only that', () => {
    expect(failing(given)).toEqual([expect.stringMatching(expected)]);
  });
});
