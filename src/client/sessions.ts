/** Starts, finds and lists sessions. */
import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { UNNAMED } from '../contract/calls.ts';
import { invalid, isPerdureError } from '../contract/errors.ts';
import type { Inbox, InboxOptions } from '../contract/inbox.ts';
import type { CancelInput } from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import type { UndoInput } from '../contract/undo.ts';
import type { SessionSummary } from '../contract/views.ts';
import { sessionError } from '../temporal/errors.ts';
import { lastCompletedTask } from '../temporal/executions.ts';
import { listSessions, type SessionListOptions } from '../temporal/visibility.ts';
import { checkNewId, checkSessionId, checkStart, type StartedAgent } from './checks.ts';
import { InboxReader } from './inbox.ts';
import { Pool } from './pool.ts';
import { Session, type SessionStores } from './session.ts';
import { checkOptions, type ForkOptions, type StartOptions, sessionInput, withId } from './start-options.ts';
import { SessionStarter } from './starter.ts';
import { TimeTravel } from './time-travel.ts';

/**
 * Sessions of one namespace.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { isPerdureError, Sessions } from 'perdure/client';
 *
 * const sessions = new Sessions(new Client());
 * try {
 *   const session = await sessions.start('desk', { id: 'ticket-7', message: 'Where is my order?' });
 *   for await (const part of session.stream({ since: 'start' })) console.log(part);
 * } catch (error) {
 *   // `code` names the error, `remedy` says what to do.
 *   if (isPerdureError(error)) console.error(error.code, error.remedy, error.message);
 * }
 * ```
 */
export class Sessions {
  readonly #client: Client;
  readonly #starter: SessionStarter;
  readonly #travel: TimeTravel;
  readonly #inbox: InboxReader;

  /**
   * @param client - Temporal's client; its namespace, codecs and interceptors apply.
   * @param options - `taskQueue`: the workers' task queue. Default: `perdure`. `values`: the workers' store of values,
   * for `session.value` and for files. `live`: the workers' live channel, for `session.stream`.
   */
  constructor(client: Client, options: { taskQueue?: string } & SessionStores = {}) {
    this.#client = client;
    this.#starter = new SessionStarter(client, options);
    this.#travel = new TimeTravel(this.#starter);
    this.#inbox = new InboxReader(client);
  }

  /**
   * Starts a session. It is durable when this returns, even if no worker runs.
   *
   * @param agent - its name, or its definition: then the context and a cap on dollars are checked here, too, and not
   * only by its worker.
   * @throws PerdureError `SESSION_EXISTS`; `CONFLICT` when the id is that of a thread of checkpoints, or with
   * `onExisting: 'use'` when the session has another agent, mode, context, cap, pool or folder; `INVALID_ARGUMENT`
   * naming the field;
   * `TOO_LARGE`; `SERVER_UNAVAILABLE`; with `onExisting: 'use'` `SESSION_FULL`. If the session may have been started
   * all the same, repeat the call with the ids in `details.sessionId` and `details.messageId`
   */
  async start<CONTEXT extends object = object, OUTPUT = unknown>(
    agent: string | StartedAgent<CONTEXT, OUTPUT>,
    options: StartOptions<NoInfer<CONTEXT>> = {},
  ): Promise<Session<OUTPUT>> {
    const id = options.id === undefined ? `session-${randomUUID()}` : options.id;
    checkNewId(id);
    checkOptions('start', options);
    const sent = await this.#starter.stored(id, options);
    const input = sessionInput(typeof agent === 'string' ? agent : agent.name, sent);
    if (typeof agent !== 'string') await checkStart(agent, input);
    // A running session takes a message with an id once, however often it is sent.
    if (options.onExisting === 'use' && input.message !== undefined) input.message = withId(input.message);
    if (options.id !== undefined) await this.#starter.refuseThread(id);
    return this.#starter.start<OUTPUT>(id, input, options, {
      workflowIdConflictPolicy: options.onExisting === 'use' ? 'USE_EXISTING' : 'FAIL',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    });
  }

  /**
   * Starts another session from a checkpoint. Its effects have keys of their own. A mutation that was open at the
   * checkpoint waits for a person, and calls that waited for approval wait again.
   *
   * @throws PerdureError as {@link Sessions.start}; `SESSION_NOT_FOUND`, `CHECKPOINT_NOT_FOUND` for a checkpoint that
   * is not of this session
   */
  async fork(from: { sessionId: string; checkpointId: string }, options: ForkOptions): Promise<Session> {
    return this.#travel.fork(from, options);
  }

  /**
   * Rewinds a session to one of its checkpoints. The present run is sealed and ended. The successor has the same id and
   * the same effect keys. Effects from after the checkpoint answer these keys, so nothing is done again; `effectsSince`
   * lists them beforehand. What was spent stays spent. If the call is interrupted, the session may be ended without a
   * successor: call `rewind` again.
   *
   * @throws PerdureError `SESSION_BUSY` while a mutation is open; `CONFLICT` when somebody else has rewound the
   * session; `SESSION_NOT_FOUND`, `CHECKPOINT_NOT_FOUND`. Then nothing has changed
   */
  async rewind(from: { sessionId: string; checkpointId: string }, options: ForkOptions): Promise<Session> {
    return this.#travel.rewind(from, options);
  }

  /**
   * Undoes the effects of a session and ends it, as {@link Session.cancel} does with `undo`. A session that has ended
   * goes on from its last checkpoint, in a new run that only undoes and ends. It does not ask the model.
   *
   * @param input - `undo`: `true`, and a person approves each undo; or the digest of {@link Session.undoPlan}, which
   * approves the list.
   * @throws PerdureError `SESSION_NOT_FOUND`; `CONFLICT` when somebody else has just begun the same; `INVALID_ARGUMENT`
   */
  async undo(sessionId: string, input: CancelInput & { undo: Exclude<UndoInput, false> }): Promise<Session> {
    const session = this.get(sessionId);
    // Without `undo`, a session that has ended would go on.
    if (!input.undo) throw invalid('undo', 'write true, or the { digest } of session.undoPlan()');
    try {
      await session.cancel(input);
      return session;
    } catch (error) {
      if (!isPerdureError(error, 'SESSION_CLOSED')) throw error;
    }
    const { by = UNNAMED, reason = 'undo its effects', undo, verified } = input;
    try {
      const { runId, taskQueue } = await this.#client.workflow.getHandle(sessionId).describe();
      const last = await lastCompletedTask(this.#client, { workflowId: sessionId, runId });
      // The session ended before it did anything.
      if (last === null) return session;
      const from = { sessionId, checkpointId: `${runId}:${last}` };
      return await this.#travel.rewind(
        from,
        { by, reason, taskQueue },
        { cancel: undo, ...defined({ verified }) },
      );
    } catch (error) {
      throw sessionError(sessionId, error);
    }
  }

  /** A handle of a session, which may not exist. @throws PerdureError `INVALID_ARGUMENT` */
  get(id: string): Session {
    checkSessionId(id);
    return new Session(this.#client, id, undefined, this.#starter.stores);
  }

  /** A handle of a pool of money, which may not exist. @throws PerdureError `INVALID_ARGUMENT` */
  pool(id: string): Pool {
    return new Pool(this.#client, id, this.#starter.taskQueue);
  }

  /** Lists sessions, newest first, from Temporal's visibility, which may lag by a second. */
  list(options: SessionListOptions = {}): AsyncGenerator<SessionSummary> {
    return listSessions(this.#client, options);
  }

  /**
   * Lists everything that waits for a person, over all sessions: approvals, calls with an unknown outcome, missing
   * tools, budgets and other waits. What expires first comes first, then what has waited longest. Visibility may lag by
   * a second.
   */
  inbox(options: InboxOptions = {}): Promise<Inbox> {
    return this.#inbox.read(options);
  }
}
