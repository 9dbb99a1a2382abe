/** What a session reports by webhooks: that it needs a person, and that it has ended. */
import type { JsonValue } from './json.ts';
import type { Effect, NotifyEvent } from './manifest.ts';

export const NOTIFY_EVENTS: readonly NotifyEvent[] = ['approval', 'unknown', 'wait', 'end'];

/** One event that a session reports. */
export interface Notification {
  event: NotifyEvent;
  /** Identifies the notification in its session. */
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
  /** For `wait` its reason, for `end` `completed` or `cancelled`, for `unknown` the call's status. */
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
  /** The session's run. It keeps the notification ids of different runs apart. */
  runId: string;
  /** Names of the webhooks. Their addresses and secrets are with the workers. */
  webhooks: string[];
}

/** Input of `deliver`: one notification for one webhook. */
export interface DeliverInput extends Omit<WebhookInput, 'notifications' | 'webhooks'> {
  webhook: string;
  notification: Notification;
}
