/** Reads from a history the calls whose worker was lost: they timed out, failed, or went to a worker again. */

import type { Client } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { activityKind } from '../src/contract/names.ts';
import { runsUpTo } from '../src/temporal/executions.ts';
import { type HistoryEvent, readEvents } from '../src/temporal/index.ts';

export interface LostActivity {
  /** The sequence number of its command. */
  readonly id: string;
  /** `model`, `tool`, `verify`, … */
  readonly type: string;
  /** When it was given up or started again, in milliseconds since 1970. */
  readonly at: number;
}

/** The lost activities of all runs of a session. */
export async function lostActivities(client: Client, workflowId: string): Promise<LostActivity[]> {
  const lost: LostActivity[] = [];
  for (const runId of await runsOf(client, workflowId))
    lost.push(...(await lostOfRun(client, workflowId, runId)));
  return lost;
}

/** The runs of a session, oldest first. */
export async function runsOf(client: Client, workflowId: string): Promise<string[]> {
  const { runId } = await client.workflow.getHandle(workflowId).describe();
  return runsUpTo(client, workflowId, runId);
}

/** The events of all runs of a session, oldest first. */
export async function* eventsOf(client: Client, workflowId: string): AsyncGenerator<HistoryEvent> {
  for (const runId of await runsOf(client, workflowId)) yield* readEvents(client, { workflowId, runId });
}

/** The lost activities of a run, without those that have not ended. */
export async function lostOfRun(client: Client, workflowId: string, runId: string): Promise<LostActivity[]> {
  const scheduled = new Map<string, { id: string; type: string }>();
  const lost: LostActivity[] = [];
  for await (const event of readEvents(client, { workflowId, runId })) {
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
