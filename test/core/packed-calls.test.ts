/** The calls of a piece without the digests that follow from the rest. */
import { expect, test } from 'vitest';
import { baseKey, messageKey, tenantKey } from '../../src/contract/keys.ts';
import type { ToolCall } from '../../src/index.ts';
import { freshCall } from '../../src/session/state.ts';
import { packCall, unpackCall } from '../../src/temporal/packed-calls.ts';

const NAMESPACE = 's:r';

function call(scope: ToolCall['scope'], own: Partial<ToolCall> = {}): ToolCall {
  const fresh = freshCall('call_4_0', { turn: 4, message: 2 }, 'pay', { bill: 'rent', at: 7 });
  return { ...fresh, scope, ...own };
}

const base = (scope: ToolCall['scope'], identity: ToolCall['args'] = { at: 7, bill: 'rent' }): string =>
  baseKey({ namespace: NAMESPACE, tool: 'pay', scope, callId: 'call_4_0', identity });

test('digests that follow from a call are not stored, and come back', () => {
  const usual = [
    call('session', { idempotencyKey: base('session') }),
    call('call', { idempotencyKey: base('call') }),
    call('global', { idempotencyKey: base('global') }),
    call('message', { idempotencyKey: messageKey(base('message'), 2) }),
    call('message', { idempotencyKey: messageKey(base('message'), 1), keyOf: 1 }),
  ];
  for (const each of usual) {
    const packed = packCall(each, NAMESPACE);
    expect(Object.keys(packed)).not.toContain('argsDigest');
    expect(Object.keys(packed)).not.toContain('idempotencyKey');
    expect(unpackCall(packed, NAMESPACE)).toEqual(each);
  }
});

test('digests that do not follow from a call are stored', () => {
  const others = [
    // A read has none.
    call('call'),
    // The tool names another identity than all arguments.
    call('session', { idempotencyKey: base('session', 'rent') }),
    // Of a tenant, and of the origin of a fork.
    call('global', { idempotencyKey: tenantKey(base('global'), 'acme') }),
    call('session', { idempotencyKey: 'of another session' }),
    // A person has edited the arguments.
    call('session', { argsDigest: 'of the arguments before', idempotencyKey: base('session') }),
  ];
  for (const each of others) expect(unpackCall(packCall(each, NAMESPACE), NAMESPACE)).toEqual(each);
});
