/** The body that a receiver gets. */
import { createHash } from 'node:crypto';
import { defined } from '../contract/json.ts';
import type { NotifyEvent } from '../contract/manifest.ts';
import type { DeliverInput, Notification } from '../contract/notifications.ts';

/** The body of a request, unless the webhook has a `format`. */
export interface WebhookEvent {
  /** `session.approval`, `.unknown`, `.wait` or `.end`; `session.test` from `perdure webhooks test`. */
  type: `session.${NotifyEvent | 'test'}`;
  /** ISO 8601: when it happened. */
  timestamp: string;
  data: {
    session: string;
    agent: string;
    tenant?: string;
    /** One sentence. */
    text: string;
    /** The session in the console, if the worker knows where that is. */
    url?: string;
  } & Omit<Notification, 'event' | 'at' | 'key'>;
}

/** The event of a notification. */
export function eventOf(
  { notification, sessionId, agent, tenant }: DeliverInput,
  { args: withArgs, consoleUrl }: { args: boolean; consoleUrl: string | undefined },
): WebhookEvent {
  const { event, at, key: _key, args, ...about } = notification;
  const url =
    consoleUrl === undefined
      ? undefined
      : `${consoleUrl.replace(/\/+$/, '')}/console/sessions/${encodeURIComponent(sessionId)}`;
  return {
    type: `session.${event}`,
    timestamp: at,
    data: {
      session: sessionId,
      agent,
      text: textOf(notification, agent, sessionId),
      ...defined({ tenant, url, args: withArgs ? args : undefined }),
      ...about,
    },
  };
}

/** A test event, which is about no session. */
export function testEvent(at: string, consoleUrl: string | undefined): WebhookEvent {
  const data = {
    session: 'test',
    agent: 'test',
    text: 'A test of perdure webhooks: nobody has to do anything',
  };
  return { type: 'session.test', timestamp: at, data: { ...data, ...defined({ url: consoleUrl }) } };
}

function textOf(
  { event, tool, callId, reason, message }: Notification,
  agent: string,
  session: string,
): string {
  const call = `${tool} (${callId})`;
  switch (event) {
    case 'approval':
      return `${agent} asks for approval of ${call} in ${session}`;
    case 'unknown':
      return reason === 'stuck'
        ? `${agent} cannot continue ${call} in ${session}: ${message}`
        : `Nobody knows what became of ${call} of ${agent} in ${session}: ${message}`;
    case 'wait':
      return `${agent} waits in ${session}: ${reason}: ${message}`;
    case 'end':
      return `${agent} has ${reason} ${session}`;
    default:
      return event satisfies never;
  }
}

/** The id of a notification, equal in all its requests. */
export function webhookId(
  namespace: string,
  { sessionId, runId, webhook, notification }: DeliverInput,
): string {
  const what = JSON.stringify([namespace, sessionId, runId, webhook, notification.key]);
  return `msg_${createHash('sha256').update(what).digest('hex').slice(0, 32)}`;
}
