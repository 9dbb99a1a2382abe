/** What runs that a reset has left say of a call that is about to run in another one. */
import { expect, test } from 'vitest';
import { leftAnswer } from '../../src/activities/earlier-runs.ts';
import type { Dispatch, ToolCall } from '../../src/index.ts';

function left(status: ToolCall['status'], ...outcomes: Dispatch['outcome'][]): ToolCall {
  const dispatches = outcomes.map((outcome, i): Dispatch => ({ no: i + 1, at: '', outcome }));
  const result = status.kind === 'completed' ? { content: 'paid', isError: false } : null;
  return {
    id: 'call_1_0',
    name: 'pay',
    idempotencyKey: 'k',
    status,
    result,
    dispatches,
  } as unknown as ToolCall;
}

const asked = (dispatchNo: number) => ({ tool: 'pay', idempotencyKey: 'k', dispatchNo });

test('a call that is done answers an equal one, and no other', () => {
  const done = [left({ kind: 'completed' }, 'returned')];
  expect(leftAnswer(done, asked(1))).toEqual({ kind: 'output', output: 'paid' });
  expect(leftAnswer(done, { ...asked(1), idempotencyKey: 'other' })).toBeNull();
  expect(leftAnswer(done, { ...asked(1), tool: 'other' })).toBeNull();
});

test('a call whose end is not known is looked into first, and runs when it is known to be absent', () => {
  const open = [left({ kind: 'running' }, null)];
  expect(leftAnswer(open, asked(1))).toMatchObject({ kind: 'unknown' });
  // The second dispatch follows an *absent* of the first.
  expect(leftAnswer(open, asked(2))).toBeNull();
  expect(leftAnswer([left({ kind: 'failed', certain: true }, 'absent')], asked(1))).toBeNull();
});
