/** Follows a session by its history alone: it works while no worker runs, and after the session has ended. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Phase, SessionState } from 'perdure';
import { foldHistory, readEvents } from '../../src/history/index.ts';
import { phaseOf } from '../../src/session/state.ts';

/** How often a history is read while something is waited for, in milliseconds. */
const LOOK_MS = 150;

/** A checkpoint: the state that the session had after one workflow task. */
export interface Checkpoint {
  /** `<run id>:<number of the task's event>`. */
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  readonly phase: Phase;
  readonly turn: number;
  readonly messages: number;
}

/** A session as its history tells it. */
export interface Journal {
  readonly state: SessionState | null;
  readonly phase: Phase;
  readonly checkpoints: readonly Checkpoint[];
}

/** Reads the history of a session and folds it. */
export async function readJournal(client: Client, workflowId: string): Promise<Journal> {
  const checkpoints: Checkpoint[] = [];
  const { state } = await foldHistory(
    readEvents(client, { workflowId }),
    client.options.loadedDataConverter,
    {
      onTask: ({ eventId, at, state: { runId, turn, transcript }, state: then }) => {
        const phase = phaseOf(then);
        checkpoints.push({ id: `${runId}:${eventId}`, at, phase, turn, messages: transcript.length });
      },
    },
  );
  return { state, phase: state === null ? 'starting' : phaseOf(state), checkpoints };
}

/** Which process ran which kind of activity, as Temporal has recorded it. */
export async function readIdentities(
  client: Client,
  workflowId: string,
): Promise<{ kind: string; identity: string }[]> {
  const kinds = new Map<number, string>();
  const ranBy: { kind: string; identity: string }[] = [];
  for await (const event of readEvents(client, { workflowId })) {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const started = event.activityTaskStartedEventAttributes;
    if (scheduled) kinds.set(Number(event.eventId), scheduled.activityType?.name ?? '');
    if (started) {
      const kind = kinds.get(Number(started.scheduledEventId)) ?? '';
      ranBy.push({ kind, identity: started.identity ?? '' });
    }
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
