/** What the server knows of an activity from its heartbeats. */
import type { Client } from '@temporalio/client';
import { expect } from 'vitest';
import type { Session } from '../../src/index.ts';
import { tsToMs } from '../../src/temporal/sdk-time.ts';

/** Waits until the heartbeats of the session's activity say this, one after the other. */
export async function heartbeats(
  { client }: { client: Client },
  session: Session,
  ...said: string[]
): Promise<void> {
  const details = async (): Promise<string> => {
    const { raw } = await client.workflow.getHandle(session.id).describe();
    return Buffer.from(raw.pendingActivities?.[0]?.heartbeatDetails?.payloads?.[0]?.data ?? []).toString();
  };
  for (const text of said) await expect.poll(details).toContain(text);
}

/** Waits until the session's activity has sent heartbeats for longer than its time-out: a silent one would be lost. */
export async function outlives(
  timeoutMs: number,
  { client }: { client: Client },
  session: Session,
): Promise<void> {
  const heard = async (): Promise<number> => {
    const { raw } = await client.workflow.getHandle(session.id).describe();
    const { attempt, lastStartedTime, lastHeartbeatTime } = raw.pendingActivities?.[0] ?? {};
    if (attempt !== 1 || !lastStartedTime || !lastHeartbeatTime) return 0;
    return tsToMs(lastHeartbeatTime) - tsToMs(lastStartedTime);
  };
  await expect.poll(heard).toBeGreaterThan(timeoutMs);
}
