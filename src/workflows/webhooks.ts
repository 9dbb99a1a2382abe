/** Delivers the notifications of a session, in a workflow of its own: so no receiver can hold up a session. */
import { proxyActivities } from '@temporalio/workflow';
import type { ActivitiesByType } from '../contract/activities.ts';
import { ACTIVITY } from '../contract/names.ts';
import type { WebhookInput } from '../contract/notifications.ts';

const { [ACTIVITY.deliver]: deliver } = proxyActivities<ActivitiesByType>({
  startToCloseTimeout: '30s',
  // A receiver may be down for days.
  scheduleToCloseTimeout: '3 days',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1h' },
});

/** Sends each notification to each webhook in parallel. Fails if one was not delivered within three days. */
export async function webhookDelivery({ notifications, webhooks, ...session }: WebhookInput): Promise<void> {
  const deliveries = webhooks.flatMap((webhook) =>
    notifications.map((notification) => deliver({ ...session, webhook, notification })),
  );
  // A failed delivery must not cut off the others.
  const ended = await Promise.allSettled(deliveries);
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}
