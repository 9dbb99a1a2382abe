/** The idempotency key of a call in its session. */
import type { ToolCall } from '../contract/calls.ts';
import { tenantOf } from '../contract/context.ts';
import type { JsonValue } from '../contract/json.ts';
import { baseKey, messageKey, tenantKey } from '../contract/keys.ts';
import type { SessionState } from '../contract/state.ts';
import { unusedKey } from './undo.ts';

/**
 * Gives a call its key. In scope `message` the key includes the number of the message that the call answers.
 *
 * After a rewind the session answers other messages than the abandoned run did. So that no effect happens again, the
 * first message with an equal call takes over the key of an effect that happened after the checkpoint. An equal call in
 * answer to a later message is a new effect.
 *
 * @param identity - what makes two calls equal. Default: all arguments
 */
export function setKey(state: SessionState, call: ToolCall, identity: JsonValue = call.args): void {
  delete call.keyOf;
  setOwnKey(state, call, identity);
  call.idempotencyKey = unusedKey(state, call.idempotencyKey);
}

function setOwnKey(state: SessionState, call: ToolCall, identity: JsonValue): void {
  const { namespace } = state;
  const base = baseKey({ namespace, tool: call.name, scope: call.scope, callId: call.id, identity });
  if (call.scope !== 'message') {
    const tenant = tenantOf(state.context);
    call.idempotencyKey = call.scope === 'global' && tenant !== null ? tenantKey(base, tenant) : base;
    return;
  }
  const { message, name } = call;
  const of = (n: number | undefined): string | null =>
    n === undefined ? null : unusedKey(state, messageKey(base, n));
  call.idempotencyKey = messageKey(base, message);
  const before = state.calls.find(
    (other) =>
      other !== call &&
      other.name === name &&
      other.message === message &&
      other.idempotencyKey === of(other.keyOf ?? message),
  );
  const equal = state.carried.filter(
    (effect) =>
      effect.tool === name &&
      effect.undone !== true &&
      (effect.takenBy ?? message) === message &&
      effect.idempotencyKey === of(effect.message),
  );
  const effect = equal.find(({ idempotencyKey }) => idempotencyKey === call.idempotencyKey) ?? equal[0];
  const n = before === undefined ? effect?.message : before.keyOf;
  if (effect !== undefined && effect.message === n) effect.takenBy = message;
  if (n === undefined || n === message) return;
  call.keyOf = n;
  call.idempotencyKey = messageKey(base, n);
}
