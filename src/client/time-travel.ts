/** Forks and rewinds: starts sessions from a checkpoint of another run. */
import { randomUUID } from 'node:crypto';
import { WorkflowNotFoundError } from '@temporalio/client';
import { invalid, isPerdureError, PerdureError } from '../contract/errors.ts';
import { canonicalJson } from '../contract/json.ts';
import type { OriginInput } from '../contract/origin.ts';
import { parseCheckpointId } from '../temporal/checkpoint-id.ts';
import { sessionError } from '../temporal/errors.ts';
import { isCompletedTask } from '../temporal/executions.ts';
import { previousRun, readStart, readStartInput } from '../temporal/index.ts';
import { storeParts } from '../temporal/store-content.ts';
import { checkFreeId, checkNewId } from './checks.ts';
import { isBeingTakenBack, TAKEN_BACK, takenBack } from './ended.ts';
import { Session } from './session.ts';
import { checkOptions, type ForkOptions, originOf, sessionInput } from './start-options.ts';
import type { SessionStarter } from './starter.ts';

/** How long an archived checkpoint waits for the session that starts from it. */
const ORIGIN_STAYS = { startDelay: '60 days', workflowRunTimeout: '1 minute' } as const;

/** A checkpoint of a session. */
export interface From {
  readonly sessionId: string;
  readonly checkpointId: string;
}

/** Starts sessions from checkpoints. */
export class TimeTravel {
  readonly #starter: SessionStarter;

  constructor(starter: SessionStarter) {
    this.#starter = starter;
  }

  /** See `Sessions.fork`. */
  async fork(from: From, options: ForkOptions): Promise<Session> {
    const id = options.id ?? `session-${randomUUID()}`;
    checkNewId(id);
    checkOptions('fork', options);
    const origin = originOf('fork', from, options);
    const sent = await this.#starter.stored(id, options);
    // Invalid input fails before anything is sent.
    sessionInput(options.agent ?? 'the same', sent, origin);
    if (options.id !== undefined) await this.#starter.refuseThread(id);
    const agent = await this.#agentOf(from, options);
    await this.#checkOrigin(from, options);
    const archived = await this.#archived(from, options, false);
    const input = sessionInput(agent, sent, { ...origin, ...archived });
    return this.#starter.start(id, input, options, {
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    });
  }

  /** See `Sessions.rewind`. With `cancel`, the successor begins cancelled: it only undoes and ends. */
  async rewind(
    from: From,
    options: ForkOptions,
    more: Pick<OriginInput, 'cancel' | 'verified'> = {},
  ): Promise<Session> {
    const { sessionId } = from;
    // Other clients may start sessions with ids that we refuse.
    checkFreeId(sessionId);
    checkOptions('fork', options);
    if (options.pool !== undefined)
      throw invalid('pool', 'a session keeps its pool when it is rewound: leave it out');
    const origin = { ...originOf('rewind', from, options), ...more };
    const sent = await this.#starter.stored(sessionId, options);
    // Invalid input fails before the session is touched.
    sessionInput(options.agent ?? 'the same', sent, origin);
    const agent = await this.#agentOf(from, options);
    await this.#checkOrigin(from, options);
    // Read the last run first. Then one of two simultaneous rewinds finds that it is no longer the last run.
    const leaves = await this.#sealLast(sessionId, options);
    // A thread may now have the id of a session that only an archive has.
    if (leaves === null) await this.#starter.refuseThread(sessionId);
    const archived = await this.#archived(from, options, leaves === null);
    const input = sessionInput(agent, sent, {
      ...origin,
      ...(leaves === null ? {} : { leaves }),
      ...archived,
    });
    if (leaves !== null) await this.#end(sessionId, leaves, `${TAKEN_BACK}${from.checkpointId}`);
    try {
      return await this.#starter.start(sessionId, input, options, {
        workflowIdConflictPolicy: 'FAIL',
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      });
    } catch (error) {
      throw isPerdureError(error, 'SESSION_EXISTS') ? takenBack(sessionId, error) : error;
    }
  }

  /** Seals the last run, and returns it; `null` when there is none. The session may go on in a new run meanwhile. */
  async #sealLast(sessionId: string, options: ForkOptions): Promise<string | null> {
    let last = await this.#runOf(sessionId);
    while (last !== null) {
      await this.#seal(sessionId, last, options);
      const now = await this.#runOf(sessionId);
      if (now === null || now === last) break;
      const start = await readStart(this.#starter.client, { workflowId: sessionId, runId: now });
      if (previousRun(start) !== last) break;
      last = now;
    }
    return last;
  }

  /** Stops a run from issuing anything. A closed run issues nothing anyway. */
  async #seal(sessionId: string, runId: string, { by, reason }: ForkOptions): Promise<void> {
    try {
      await new Session(this.#starter.client, sessionId, runId).seal({ by, reason });
    } catch (error) {
      const closed = isPerdureError(error, 'SESSION_CLOSED') || isPerdureError(error, 'SESSION_NOT_FOUND');
      if (!closed && !isBeingTakenBack(error)) throw error;
    }
  }

  /** Refuses a checkpoint of another session: a session from it could not be read. */
  async #checkOrigin({ sessionId, checkpointId }: From, { saver }: ForkOptions): Promise<void> {
    const { runId, eventId } = parseCheckpointId(checkpointId);
    try {
      if (await isCompletedTask(this.#starter.client, { workflowId: sessionId, runId }, eventId)) return;
    } catch (error) {
      throw sessionError(sessionId, error);
    }
    if (saver !== undefined && (await saver.get(sessionId, { checkpointId })) !== null) return;
    throw new PerdureError(
      'CHECKPOINT_NOT_FOUND',
      `Session ${sessionId} has no checkpoint ${checkpointId}. List its checkpoints again`,
    );
  }

  /** Ends the run that the successor replaces, and no other run: the effects of a run in between would be lost. */
  async #end(sessionId: string, runId: string, reason: string): Promise<void> {
    try {
      await this.#starter.client.workflow.getHandle(sessionId, runId).terminate(reason);
    } catch (error) {
      // The run has closed by itself, or somebody else has ended it.
      if (!(error instanceof WorkflowNotFoundError)) throw sessionError(sessionId, error);
    }
    if ((await this.#runOf(sessionId)) !== runId) throw takenBack(sessionId);
  }

  /** The session's own agent, or the named one if the session is gone. Another name is refused. */
  async #agentOf({ sessionId, checkpointId }: From, { agent, saver }: ForkOptions): Promise<string> {
    const started = await readStartInput(this.#starter.client, sessionId).catch((error: unknown) => {
      throw sessionError(sessionId, error);
    });
    let { agent: own } = (started ?? {}) as { agent?: unknown };
    if (own === undefined) {
      const past = await saver?.get(sessionId, { checkpointId });
      own = past?.state['agent'] ?? agent;
    }
    if (typeof own !== 'string') {
      throw new PerdureError('SESSION_NOT_FOUND', `There is no session ${sessionId}`);
    }
    if (agent === undefined || agent === own) return own;
    throw invalid(
      'agent',
      `session ${sessionId} belongs to ${own}, and only ${own} can continue from its checkpoints`,
    );
  }

  /** A run that the server has, or `null`. */
  async #runOf(sessionId: string, runId?: string): Promise<string | null> {
    try {
      return (await this.#starter.client.workflow.getHandle(sessionId, runId).describe()).runId;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw sessionError(sessionId, error);
    }
  }

  /** Stores an archived checkpoint where workers can read it. */
  async #archived(
    { sessionId, checkpointId }: From,
    { saver, taskQueue = this.#starter.taskQueue }: ForkOptions,
    gone: boolean,
  ): Promise<Pick<OriginInput, 'archived' | 'leaves'>> {
    const { runId } = parseCheckpointId(checkpointId);
    if (saver === undefined || (await this.#runOf(sessionId, runId)) !== null) return {};
    const [past, last] = await Promise.all([
      saver.get(sessionId, { checkpointId }),
      gone ? saver.get(sessionId) : null,
    ]);
    if (past === null) return {};
    const text = canonicalJson({ past: past.state, last: last?.state ?? null });
    try {
      const archived = await storeParts(this.#starter.client, {
        key: `origin/${randomUUID()}`,
        content: text,
        what: `${checkpointId} of ${sessionId}`,
        taskQueue,
        // No worker gets these workflows, and they close by themselves.
        ...ORIGIN_STAYS,
      });
      // Name the run that is left, because that gives the order of runs.
      return last === null ? { archived } : { archived, leaves: parseCheckpointId(last.id).runId };
    } catch (error) {
      throw sessionError(sessionId, error);
    }
  }
}
