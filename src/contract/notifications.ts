/** What a session says to the outside, by webhooks: that a person is needed, and that it has ended. */
import type { JsonValue } from './json.ts';
import type { Effect, NotifyEvent } from './manifest.ts';

export const NOTIFY_EVENTS: readonly NotifyEvent[] = ['approval', 'unknown', 'wait', 'end'];

/** One thing that a session tells. */
export interface Notification {
  event: NotifyEvent;
  /** What it is about; unique in the session. */
  key: string;
  /** ISO 8601. */
  at: string;
  callId?: string;
  tool?: string;
  effect?: Effect;
  argsDigest?: string;
  dispatchNo?: number;
  args?: JsonValue;
  /** ISO 8601: when the approval expires. */
  expiresAt?: string;
  /** Of a wait: its reason. Of an end: `completed` or `cancelled`. */
  reason?: string;
  message?: string;
}

/** Input of `notify`. */
export interface NotifyInput {
  agent: string;
  tenant?: string;
  notifications: Notification[];
}

/** Input of the workflow that delivers notifications, which outlives the session. */
export interface WebhookInput extends NotifyInput {
  sessionId: string;
  /** The session's run, which makes the ids of its notifications its own. */
  runId: string;
  /** Names of the webhooks. Their addresses and secrets are with the workers. */
  webhooks: string[];
}

/** Input of `deliver`: one notification for one webhook. */
export interface DeliverInput extends Omit<WebhookInput, 'notifications' | 'webhooks'> {
  webhook: string;
  notification: Notification;
}
