/** Identity of calls: what makes two calls the same. */
import { canonicalJson, defined, digestJson, type JsonValue, sha256Hex } from './json.ts';
import type { IdempotencyScope } from './manifest.ts';
import type { Message } from './messages.ts';

/** SHA-256 of the canonical JSON of `{tool_name, args}`: the integrity check of a call. */
export function argsDigest(toolName: string, args: JsonValue): string {
  return digestJson({ tool_name: toolName, args });
}

/**
 * The effect namespace of a session that was started by the run `firstRunId`. A session that is started again under the
 * same id has other keys. A rewound session keeps the namespace of its past.
 */
export function effectNamespace(sessionId: string, firstRunId: string): string {
  return `${sessionId}:${firstRunId}`;
}

/** The start of a digest: enough to notice that a definition changed, or arguments that are on record in full. */
export function shortDigest(digest: string): string {
  return digest.slice(0, 16);
}

/**
 * The base of a call's idempotency key: SHA-256 of the namespace, the tool, the call's id in scope `call`, and the
 * canonical JSON of the identity. In scope `message`, {@link messageKey} adds the number of the user's message. In
 * scope `global`, {@link tenantKey} adds the tenant. Otherwise the base is the key.
 *
 * Different calls never hash the same text, whatever colons namespaces and arguments contain: a tool name has no colon
 * and does not look like a call id, and no suffix of a JSON text after `<name>:` is JSON itself.
 *
 * The key does not depend on an attempt or a clock, so it stays the same over retries, resumes, verification and
 * resets. `namespace` is the session's effect namespace, see {@link effectNamespace}.
 *
 * @param identity - what the tool names as the identity of the call: the arguments, some of them, or a text.
 */
export function baseKey(input: {
  namespace: string;
  tool: string;
  scope: IdempotencyScope;
  callId: string;
  identity: JsonValue;
}): string {
  const { namespace, tool, scope, callId, identity } = input;
  const text = canonicalJson(identity);
  switch (scope) {
    case 'message':
    case 'session':
      return sha256Hex(`${namespace}:${tool}:${text}`);
    case 'call':
      return sha256Hex(`${namespace}:${tool}:${callId}:${text}`);
    case 'global':
      // The namespace is empty. A session id is never empty, so no key of a session is equal.
      return sha256Hex(`:${tool}:${text}`);
    default:
      return scope satisfies never;
  }
}

/**
 * The key of a call with scope `call` whose identity is its arguments, in a session that was started by the run
 * `runId`. The worker of a read computes it, so it is not in the history.
 */
export function readKey(call: {
  sessionId: string;
  runId: string;
  tool: string;
  callId: string;
  args: JsonValue;
}): string {
  const { sessionId, runId, tool, callId, args } = call;
  const namespace = effectNamespace(sessionId, runId);
  return baseKey({ namespace, tool, scope: 'call', callId, identity: args });
}

/**
 * The key of a call with scope `message`: equal calls that answer message number `message` are one effect.
 *
 * @param base - {@link baseKey}.
 */
export function messageKey(base: string, message: number): string {
  return sha256Hex(`${base}:${message}`);
}

/**
 * The key of a call with scope `global` in a session of a tenant: two tenants never share an effect. In a session
 * without a tenant, {@link baseKey} is the key.
 */
export function tenantKey(base: string, tenant: string): string {
  return sha256Hex(`${base}:${canonicalJson(tenant)}`);
}

/** The key of the call that undoes the effect of this key. */
export function compensationKey(effect: string): string {
  return sha256Hex(`${effect}:compensate`);
}

/**
 * The key of an equal call after the effect with this key was undone. To the same key, a service would answer from its
 * record.
 */
export function keyAfterUndo(effect: string): string {
  return sha256Hex(`${effect}:again`);
}

/** The digest of a list of effects. */
export function effectsDigest(effects: readonly { id: string; idempotencyKey: string }[]): string {
  return digestJson(effects.map(({ id, idempotencyKey }) => [id, idempotencyKey]));
}

/** The digest of an empty transcript. */
export const EMPTY_DIGEST = '';

/**
 * Chains a message to the digest of everything before it. Half of SHA-256, because each model call's input holds it.
 */
export function chainDigest(previous: string, message: JsonValue): string {
  return sha256Hex(`${previous}\n${canonicalJson(message)}`).slice(0, 32);
}

/**
 * Chains a message of a transcript. The digest leaves out the message's time: the SDK may continue a timed-out workflow
 * task in the next task with the time of the first, and a replay would compute another digest.
 */
export function chainMessage(previous: string, { id, role, blocks, summary, aside }: Message): string {
  const said = { id, role, blocks, ...defined({ summary, aside }) };
  return chainDigest(previous, said as unknown as JsonValue);
}
