/** What a history says of calls whose worker was lost: it timed out, failed, or had to be handed to a worker again. */

import type { Client } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { activityKind } from '../src/contract/names.ts';
import { readEvents } from '../src/temporal/index.ts';

export interface LostActivity {
  /** The sequence number of its command. */
  readonly id: string;
  /** `model`, `tool`, `verify`, … */
  readonly type: string;
  /** When it was given up, or begun again; milliseconds since the epoch. */
  readonly at: number;
}

/** The lost activities of a workflow's newest run. What has not ended is not among them. */
export async function lostActivities(client: Client, workflowId: string): Promise<LostActivity[]> {
  const scheduled = new Map<string, { id: string; type: string }>();
  const lost: LostActivity[] = [];
  for await (const event of readEvents(client, { workflowId })) {
    const asked = event.activityTaskScheduledEventAttributes;
    if (asked)
      scheduled.set(String(event.eventId), {
        id: asked.activityId ?? '',
        type: activityKind(asked.activityType?.name) ?? '',
      });
    const started = event.activityTaskStartedEventAttributes;
    const again = (started?.attempt ?? 1) > 1 ? started : undefined;
    const end = event.activityTaskTimedOutEventAttributes ?? event.activityTaskFailedEventAttributes ?? again;
    const of = scheduled.get(String(end?.scheduledEventId));
    if (of !== undefined) lost.push({ ...of, at: tsToMs(event.eventTime) });
  }
  return lost;
}
