/** Moves sessions from one worker version to another. */
import type { Client } from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import { SIGNAL } from '../contract/names.ts';
import { sessionError } from '../temporal/errors.ts';
import { isVersion, type WorkerVersion } from '../temporal/pollers.ts';
import { whyUnanswered } from '../temporal/unanswered.ts';
import { overrideVersion, type RunsOn, runsOn, versionsOf, workersOf } from '../temporal/versions.ts';
import { checkHeadroom } from './checks.ts';

const MOVE_MS = 30_000;
const LOOK_MS = 100;
/** How long the server may take to answer, in milliseconds. */
const ANSWER_MS = 10_000;

/** The result of {@link moveSession}. */
export interface MovedSession {
  sessionId: string;
  from: WorkerVersion | null;
  to: WorkerVersion;
  /** `false`: the session was on that version already. */
  moved: boolean;
}

/**
 * Moves a session to a version of its workers, and returns when that version has completed a workflow task of the
 * session. The session gets a signal that changes nothing, so that an idle session moves, too. A pinned session is then
 * pinned to the new version. A session that is not pinned can only move to the current version. After an interrupted or
 * failed move, call `moveSession` again.
 *
 * @param options - `timeoutMs`: how long the move may take. Default: 30 seconds.
 * @throws PerdureError `SESSION_NOT_FOUND`, `SESSION_CLOSED`; `INVALID_ARGUMENT` when there is no such version;
 * `CONFLICT` when the session is not pinned and the version is not current; `NO_WORKER` when no worker of the version
 * polls the session's task queue: then nothing has changed; `TASK_FAILING` and the like when the version does not
 * continue the session in time: the session stays pinned to that version until it is moved again
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { moveSession } from 'perdure/client';
 *
 * await moveSession(new Client(), 'ticket-7', { deployment: 'desk', buildId: '0.2.0-5d0fa1c2' });
 * ```
 */
export async function moveSession(
  client: Client,
  sessionId: string,
  to: WorkerVersion,
  { timeoutMs = MOVE_MS }: { timeoutMs?: number } = {},
): Promise<MovedSession> {
  const look = (): Promise<RunsOn> => answered(client, sessionId, () => runsOn(client, sessionId));
  const before = await look();
  const { version: from, pinned } = before;
  if (!before.running)
    throw new PerdureError('SESSION_CLOSED', `Session ${sessionId} is closed. Start a new one`);
  if (isVersion(from, to) && before.override === null) return { sessionId, from, to, moved: false };
  await checkTarget(client, sessionId, to, before);
  const override = (version: WorkerVersion | null): Promise<void> =>
    answered(client, sessionId, () => overrideVersion(client, sessionId, version));
  if (pinned) await override(to);
  else if (before.override !== null) await override(null);
  if (!isVersion(from, to)) await wake(client, sessionId);
  const askedMs = Date.now();
  // The session may go on in a new run meanwhile, and that run inherits the override.
  for (let now = await look(); ; now = await look()) {
    // After a move that failed, the task of the other version is repeated here.
    const isThere = isVersion(now.version, to) && !now.isFailing;
    if (isThere && now.override === null) break;
    if (isThere) await override(null);
    else if (!now.running)
      throw new PerdureError('SESSION_CLOSED', `Session ${sessionId} has ended meanwhile`);
    else if (Date.now() - askedMs > timeoutMs) throw await stayed(client, sessionId, to, askedMs);
    else await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return { sessionId, from, to, moved: !isVersion(from, to) };
}

/** Refuses a version that the session could not move to. */
async function checkTarget(
  client: Client,
  sessionId: string,
  to: WorkerVersion,
  { pinned, taskQueue }: RunsOn,
): Promise<void> {
  const versions = await answered(client, sessionId, () => versionsOf(client, to.deployment));
  const target = versions.find((version) => isVersion(version, to));
  if (target === undefined) {
    const known = versions.map(({ buildId }) => buildId).join(', ') || 'none';
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `to.buildId: deployment ${to.deployment} has no version ${to.buildId}. Its versions: ${known}`,
      { details: { field: 'to.buildId' } },
    );
  }
  const current = versions.find(({ status }) => status === 'current');
  if (!pinned && target.status !== 'current') {
    throw new PerdureError(
      'CONFLICT',
      `Session ${sessionId} is not pinned: it follows the current version of ${to.deployment}, which is ${current?.buildId ?? 'none'}. Make ${to.buildId} current`,
      { details: { current: current?.buildId ?? null } },
    );
  }
  const workers = await answered(client, sessionId, () => workersOf(client, taskQueue, to));
  if (workers.length > 0) return;
  throw new PerdureError(
    'NO_WORKER',
    `No worker of version ${to.buildId} of ${to.deployment} polls task queue ${taskQueue}. Start one, and move session ${sessionId} again`,
    { details: { taskQueue } },
  );
}

/** Gives an idle session a workflow task. No call has this id, so the signal changes nothing. */
async function wake(client: Client, sessionId: string): Promise<void> {
  const handle = client.workflow.getHandle(sessionId);
  await answered(client, sessionId, async () => {
    await checkHeadroom(client, handle, SIGNAL.effectDone);
    await handle.signal(SIGNAL.effectDone, { callId: 'none' });
  });
}

async function stayed(
  client: Client,
  sessionId: string,
  { deployment, buildId }: WorkerVersion,
  askedMs: number,
): Promise<PerdureError> {
  const what = `session ${sessionId}`;
  const asked = { workflowId: sessionId, what, askedMs };
  const { code, message, details } = await answered(client, sessionId, () => whyUnanswered(client, asked));
  const next = 'It moves when a worker of that version completes its task. Move it again to check';
  return new PerdureError(
    code,
    `${what} did not move to ${buildId} of ${deployment} in time: ${message}. ${next}`,
    {
      details,
    },
  );
}

async function answered<T>(client: Client, sessionId: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await client.withDeadline(Date.now() + ANSWER_MS, ask);
  } catch (error) {
    throw sessionError(sessionId, error);
  }
}
