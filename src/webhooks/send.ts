/** One signed request to a receiver. */
import { createHmac } from 'node:crypto';
import { messageOf } from '../contract/errors.ts';
import { keysOf, type Webhook } from './options.ts';

/** How long a receiver may take, in milliseconds. */
const ANSWER_MS = 15_000;

/**
 * Sends a body, signed as Standard Webhooks says.
 *
 * @throws Error that says why the receiver cannot be reached
 */
export async function send(
  webhook: Webhook,
  { id, body, attempt, signal }: { id: string; body: string; attempt: number; signal?: AbortSignal },
): Promise<Response> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signatures = keysOf(webhook).map(
    (key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  );
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    // From 2 on, the receiver may have seen this id before.
    'perdure-attempt': String(attempt),
    ...(signatures.length === 0 ? {} : { 'webhook-signature': signatures.join(' ') }),
  };
  const timeout = AbortSignal.timeout(ANSWER_MS);
  const response = await fetch(webhook.url, {
    method: 'POST',
    headers,
    body,
    redirect: 'manual',
    signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
  }).catch((error: unknown) => {
    throw new Error(reasonOf(error), { cause: error });
  });
  await response.body?.cancel();
  return response;
}

/** The reason of a failed request. Undici says only `fetch failed`, and keeps the reason in the cause. */
function reasonOf(error: unknown): string {
  return messageOf((error as { cause?: unknown }).cause ?? error);
}
