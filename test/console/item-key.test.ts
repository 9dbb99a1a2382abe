import { expect, test } from 'vitest';
import { keyOf } from '../../src/console/item-key.ts';
import type { InboxItem } from '../../src/contract/inbox.ts';

const seen = { callId: 'call_0_0', argsDigest: 'd1' };

/** A call that waits for a global effect, whose dispatch is in question. */
function item(dispatchNo: number, since = '2026-11-24T10:00:00.000Z'): InboxItem {
  return {
    sessionId: 's1',
    agent: 'herald',
    tenant: null,
    kind: 'unknown',
    reason: 'Nobody knows.',
    since,
    until: null,
    call: {
      callId: 'call_1_0',
      tool: 'announce',
      args: {},
      argsDigest: 'd1',
      dispatchNo: 0,
      idempotencyKey: 'k',
      status: { kind: 'awaiting', checks: 1 },
      decision: null,
      next: { action: 'resolve', sessionId: 'effect:k', ...seen, dispatchNo },
    },
    wait: null,
    answers: [],
  };
}

test('an item is the same in the next reading', () => {
  expect(keyOf(item(1))).toBe(keyOf(item(1)));
});

test('another dispatch of a global effect, or another time of asking, is another item', () => {
  expect(keyOf(item(2))).not.toBe(keyOf(item(1)));
  expect(keyOf(item(1, '2026-11-24T10:05:00.000Z'))).not.toBe(keyOf(item(1)));
});
