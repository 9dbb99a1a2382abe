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

/** Enough of a digest to tell whether something has changed: a definition, or arguments that are on record in full. */
export function shortDigest(digest: string): string {
  return digest.slice(0, 16);
}

/**
 * What a call's idempotency key is made from: `sha256(namespace : tool : scope : canonical JSON)`. It is the key itself,
 * except in scope `message`, where {@link messageKey} adds the number of the user's message, and in scope `global`, where
 * {@link tenantKey} adds the tenant.
 *
 * Two different calls never have the same text, whatever colons namespaces and arguments hold: a tool's name has no colon
 * and does not look like a call's id, and what follows a colon after such a name in a JSON text is not JSON itself.
 *
 * It is the same over retries, resumes, verification and resets: it does not depend on an attempt or a clock.
 * `namespace` is the session's effect namespace, see {@link effectNamespace}.
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
      // Of no session: an id is never empty, so no session's keys are these.
      return sha256Hex(`:${tool}:${text}`);
    default:
      return scope satisfies never;
  }
}

/**
 * The key of a call with scope `call` whose identity is its arguments, in a session that was started by the run `runId`.
 * The worker of a read computes it, so it is not in the history.
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
 * The key of a call with scope `global` in a session of a tenant: the effects of two tenants are never one. A session
 * without a tenant has {@link baseKey} itself.
 */
export function tenantKey(base: string, tenant: string): string {
  return sha256Hex(`${base}:${canonicalJson(tenant)}`);
}

/** The key of the call that undoes the effect of this key. */
export function compensationKey(effect: string): string {
  return sha256Hex(`${effect}:compensate`);
}

/** The key of an equal call after the effect of this key was undone. A service would answer the same key from its record. */
export function keyAfterUndo(effect: string): string {
  return sha256Hex(`${effect}:again`);
}

/** The digest of a list of effects. */
export function effectsDigest(effects: readonly { id: string; idempotencyKey: string }[]): string {
  return digestJson(effects.map(({ id, idempotencyKey }) => [id, idempotencyKey]));
}

/** The digest of an empty transcript. */
export const EMPTY_DIGEST = '';

/** Chains a message to the digest of everything before it. Half of SHA-256: it is in the input of each model call. */
export function chainDigest(previous: string, message: JsonValue): string {
  return sha256Hex(`${previous}\n${canonicalJson(message)}`).slice(0, 32);
}

/**
 * Chains a message of a transcript. The digest leaves out the time. The SDK may continue a timed-out task in the next one with
 * the first one's time, and a replay would come to another digest.
 */
export function chainMessage(previous: string, { id, role, blocks, summary, aside }: Message): string {
  const said = { id, role, blocks, ...defined({ summary, aside }) };
  return chainDigest(previous, said as unknown as JsonValue);
}
