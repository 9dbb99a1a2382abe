/** The webhooks of a worker. The history holds only their names. */
import { PerdureError } from '../contract/errors.ts';
import type { JsonValue } from '../contract/json.ts';
import type { NotifyEvent, NotifyPolicy } from '../contract/manifest.ts';
import { NOTIFY_EVENTS } from '../contract/notifications.ts';
import type { WebhookEvent } from './body.ts';

/** Where notifications go. */
export interface Webhook {
  /** `https:`, or `http:` for a receiver of your own network. Redirects are not followed. */
  url: string;
  /**
   * The secret that signs each request, as Standard Webhooks says: `whsec_` and at least 24 bytes in base64. With a
   * list, each secret signs, so that you can change the secret. `null`: no signature, because the address itself is the
   * secret.
   */
  secret: string | readonly string[] | null;
  /** The events to send. Default: all. */
  events?: readonly NotifyEvent[];
  /** The names of the agents whose events to send. Default: all. */
  agents?: readonly string[];
  /** Sends the arguments of calls, up to 4,000 bytes of JSON. The session's history then holds them once more. */
  args?: boolean;
  /** Makes the body for receivers with a shape of their own, such as Slack. Default: the event as it is. */
  format?: (event: WebhookEvent) => JsonValue;
}

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const LEAST_SECRET = 24;
const NEW_SECRET = `node -p "'whsec_' + require('crypto').randomBytes(32).toString('base64')"`;

/** @throws PerdureError `INVALID_DEFINITION` that names the field */
export function checkWebhooks(webhooks: Readonly<Record<string, Webhook>>): void {
  for (const [name, webhook] of Object.entries(webhooks)) {
    const problem = problemOf(webhook);
    if (problem !== null) throw new PerdureError('INVALID_DEFINITION', `webhooks.${name}.${problem}`);
  }
}

function problemOf({ url, secret, events = [] }: Webhook): string | null {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return 'url: write an address that begins with https://';
  const secrets = secretsOf(secret);
  if (secret !== null && secrets.length === 0)
    return 'secret: the list is empty: write null to send unsigned';
  // The value stays out of the message.
  if (secrets.some((one) => keyOf(one) === null))
    return `secret: write whsec_ and at least ${LEAST_SECRET} bytes in base64. Make one: ${NEW_SECRET}`;
  const unknown = events.find((event) => !NOTIFY_EVENTS.includes(event));
  return unknown === undefined ? null : `events: ${unknown} is none of ${NOTIFY_EVENTS.join(', ')}`;
}

/** The keys that sign a webhook's requests. */
export function keysOf({ secret }: Webhook): Buffer[] {
  return secretsOf(secret).flatMap((one) => keyOf(one) ?? []);
}

function secretsOf(secret: Webhook['secret']): readonly string[] {
  if (secret === null) return [];
  // Without types, a secret may be missing: an environment variable that is not set.
  return typeof secret === 'object' ? secret : [String(secret)];
}

function keyOf(secret: string): Buffer | null {
  const [, text] = SECRET.exec(secret) ?? [];
  const key = Buffer.from(text ?? '', 'base64');
  return key.length >= LEAST_SECRET ? key : null;
}

/** Whether a webhook is for an event of an agent. */
export function wants(
  { events = NOTIFY_EVENTS, agents }: Webhook,
  agent: string,
  event: NotifyEvent,
): boolean {
  return events.includes(event) && agents?.includes(agent) !== false;
}

/** What sessions of an agent must report for these webhooks; `undefined` if nothing. */
export function policyFor(
  webhooks: Readonly<Record<string, Webhook>>,
  agent: string,
): NotifyPolicy | undefined {
  const all = Object.values(webhooks);
  const events = NOTIFY_EVENTS.filter((event) => all.some((webhook) => wants(webhook, agent, event)));
  if (events.length === 0) return undefined;
  const args = all.some((webhook) => webhook.args === true && webhook.agents?.includes(agent) !== false);
  return { events, ...(args ? { args } : {}) };
}
