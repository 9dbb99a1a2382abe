/** Packs calls for storage: leaves out the digests that can be computed again, because digests do not compress. */
import type { ToolCall } from '../contract/calls.ts';
import { argsDigest, baseKey, messageKey } from '../contract/keys.ts';

type Derived = 'argsDigest' | 'idempotencyKey';

/** A call without the digests that {@link unpackCall} computes. */
export type PackedCall = Omit<ToolCall, Derived> & Partial<Pick<ToolCall, Derived>>;

/** @param namespace - the effect namespace that most of the piece's calls belong to */
export function packCall(call: ToolCall, namespace: string): PackedCall {
  const packed: PackedCall = { ...call };
  if (call.argsDigest === argsDigest(call.name, call.args)) delete packed.argsDigest;
  if (call.idempotencyKey !== '' && call.idempotencyKey === usualKey(call, namespace))
    delete packed.idempotencyKey;
  return packed;
}

/** The call that was packed with the same namespace. */
export function unpackCall(packed: PackedCall, namespace: string): ToolCall {
  const { argsDigest: digest = argsDigest(packed.name, packed.args) } = packed;
  const { idempotencyKey = usualKey(packed, namespace) } = packed;
  return { ...packed, argsDigest: digest, idempotencyKey };
}

/** The key of a call whose identity is its arguments, in a session without a tenant. */
function usualKey({ id, name, args, scope, message, keyOf }: PackedCall, namespace: string): string {
  const base = baseKey({ namespace, tool: name, scope, callId: id, identity: args });
  return scope === 'message' ? messageKey(base, keyOf ?? message) : base;
}
