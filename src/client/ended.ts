/** Handles runs that were ended from outside: their histories do not say so to the session. */
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import type { SessionView } from '../contract/views.ts';
import { endReason } from '../temporal/index.ts';

/** The prefix of the reason with which a rewind ends a run. The checkpoint follows. */
export const TAKEN_BACK = 'taken back to ';

const ENDED: readonly string[] = ['TERMINATED', 'TIMED_OUT', 'FAILED', 'CANCELLED'];

/** Whether an error says that a rewind has ended the session's run and not started the next one yet. */
export function isBeingTakenBack(error: unknown): boolean {
  return isPerdureError(error, 'SESSION_BUSY') && 'takenBackTo' in error.details;
}

/** Replaces the error of a closed session that a rewind is about to continue. */
export async function endedError(
  client: Client,
  run: { workflowId: string; runId?: string },
  closed: PerdureError,
): Promise<PerdureError> {
  const reason = await endReason(client, run).catch(() => '');
  if (!reason.startsWith(TAKEN_BACK)) return closed;
  const takenBackTo = reason.slice(TAKEN_BACK.length);
  return new PerdureError(
    'SESSION_BUSY',
    `Session ${run.workflowId} is being rewound to ${takenBackTo}. Try again in a moment. If it does not continue, rewind it again`,
    { details: { takenBackTo }, cause: closed.cause },
  );
}

/** The view of a session, corrected when its run was ended from outside. Its calls can no longer be decided. */
export async function withEnd(
  client: Client,
  view: SessionView,
  { status, workflowId, runId, closeTime }: WorkflowExecutionDescription,
): Promise<SessionView> {
  if (view.status.kind !== 'active' || !ENDED.includes(status.name)) return view;
  const reason = await endReason(client, { workflowId, runId });
  // The rewind starts a successor in a moment.
  if (reason.startsWith(TAKEN_BACK)) return view;
  const run = status.name.toLowerCase();
  const ended = { kind: 'ended', at: closeTime?.toISOString() ?? null, run, reason } as const;
  return { ...view, status: ended, phase: 'closed', pending: [], wait: null, paused: null };
}

/** The error of a rewind that lost against another rewind. */
export function takenBack(sessionId: string, cause?: unknown): PerdureError {
  return new PerdureError(
    'CONFLICT',
    `Session ${sessionId} was rewound by somebody else in the meantime. List its checkpoints again`,
    cause === undefined ? {} : { cause },
  );
}
