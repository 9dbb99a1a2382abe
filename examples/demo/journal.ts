/** Follows a session by its history alone: it works while no worker runs, and after the session has ended. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { type Phase, type SessionState, TemporalSaver } from 'perdure';
import { firstValue, readEvents } from '../../src/temporal/index.ts';
import type { Ran } from './evidence.ts';

/** How often a history is read while something is waited for, in milliseconds. */
const LOOK_MS = 150;

/** A session as its history tells it: its latest checkpoint, `null` before the first. */
export interface Journal {
  readonly state: SessionState | null;
  readonly phase: Phase;
}

/** Reads the history of a session. */
export async function readJournal(client: Client, sessionId: string): Promise<Journal> {
  const latest = await new TemporalSaver(client).get(sessionId);
  if (latest === null) return { state: null, phase: 'starting' };
  return { state: latest.state as unknown as SessionState, phase: latest.metadata['phase'] as Phase };
}

/** Which process ran which activity, as Temporal has recorded it. */
export async function readIdentities(client: Client, workflowId: string): Promise<Ran[]> {
  const asked = new Map<number, Omit<Ran, 'identity'>>();
  const ranBy: Ran[] = [];
  for await (const event of readEvents(client, { workflowId })) {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const started = event.activityTaskStartedEventAttributes;
    if (scheduled) {
      const input = (await firstValue(client.options, workflowId, scheduled.input)) as
        | { callId?: string }
        | undefined;
      const kind = scheduled.activityType?.name?.replace('perdure.', '') ?? '';
      asked.set(Number(event.eventId), { kind, callId: input?.callId ?? null });
    }
    const activity = asked.get(Number(started?.scheduledEventId));
    if (activity !== undefined) ranBy.push({ ...activity, identity: started?.identity ?? '' });
  }
  return ranBy;
}

/**
 * Reads the history again and again until `condition` holds, and tells `seen` of each state on the way.
 *
 * @throws Error naming `what` when it takes longer than `limitMs`; the signal's reason when it fires.
 */
export async function followUntil(
  client: Client,
  workflowId: string,
  options: {
    what: string;
    condition: (journal: Journal) => boolean;
    seen: (journal: Journal) => void;
    limitMs: number;
    signal: AbortSignal;
  },
): Promise<Journal> {
  const { what, condition, seen, limitMs, signal } = options;
  const end = performance.now() + limitMs;
  for (;;) {
    signal.throwIfAborted();
    const journal = await readJournal(client, workflowId);
    seen(journal);
    if (condition(journal)) return journal;
    if (performance.now() > end) {
      const wait = journal.state?.wait;
      throw new Error(
        `${what} did not come within ${limitMs / 1_000} s; the session is ${journal.phase}` +
          (wait ? `: ${wait.message}` : ''),
      );
    }
    await delay(LOOK_MS, undefined, { signal });
  }
}
