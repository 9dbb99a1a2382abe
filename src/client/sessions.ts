/** Sessions, from outside: start, find, list. */
import { randomUUID } from 'node:crypto';
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { UNNAMED } from '../contract/calls.ts';
import { invalid, isPerdureError, PerdureError } from '../contract/errors.ts';
import type { Inbox, InboxOptions } from '../contract/inbox.ts';
import type { CancelInput, SendInput } from '../contract/inputs.ts';
import { canonicalJson, defined } from '../contract/json.ts';
import { DEFAULT_TASK_QUEUE, SIGNAL, WORKFLOW } from '../contract/names.ts';
import type { OriginInput } from '../contract/origin.ts';
import type { SessionInput } from '../contract/session-input.ts';
import { threadWorkflowId } from '../contract/thread.ts';
import type { UndoInput } from '../contract/undo.ts';
import type { SessionSummary } from '../contract/views.ts';
import { parseCheckpointId } from '../temporal/checkpoint-id.ts';
import { retryHint, sessionError } from '../temporal/errors.ts';
import { isCompletedTask, lastCompletedTask } from '../temporal/executions.ts';
import { readStart, readStartInput } from '../temporal/index.ts';
import { storeParts } from '../temporal/store-content.ts';
import { listSessions, type SessionListOptions } from '../temporal/visibility.ts';
import {
  checkFreeId,
  checkHeadroom,
  checkNewId,
  checkSessionId,
  checkStart,
  type StartedAgent,
} from './checks.ts';
import { isBeingTakenBack, TAKEN_BACK, takenBack } from './ended.ts';
import { InboxReader } from './inbox.ts';
import { storedMessage } from './message-parts.ts';
import { Pool } from './pool.ts';
import { Session, type SessionStores } from './session.ts';
import {
  checkOptions,
  type ForkOptions,
  originOf,
  type StartOptions,
  sessionInput,
  startArguments,
  withId,
} from './start-options.ts';

/** How long an archived checkpoint waits for the session that starts from it. */
const ORIGIN_STAYS = { startDelay: '60 days', workflowRunTimeout: '1 minute' } as const;

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
  readonly #taskQueue: string;
  readonly #stores: SessionStores;
  readonly #inbox: InboxReader;

  /**
   * @param client - Temporal's client; its namespace, codecs and interceptors apply.
   * @param options - `taskQueue`: of the workers. Default: `perdure`. `values`: the workers' store of values, for
   * `session.value`. `live`: the workers' live channel, for `session.stream`.
   */
  constructor(client: Client, { taskQueue, ...stores }: { taskQueue?: string } & SessionStores = {}) {
    this.#client = client;
    this.#stores = stores;
    this.#inbox = new InboxReader(client);
    this.#taskQueue = taskQueue ?? DEFAULT_TASK_QUEUE;
  }

  /**
   * Starts a session. It is durable when this returns, also with no worker running.
   *
   * @param agent - its name, or its definition: then the context and a cap on dollars are checked here, too, and not only by its worker.
   * @throws PerdureError `SESSION_EXISTS`, `CONFLICT` when the id is that of a thread of checkpoints, or with
   * `onExisting: 'use'` that of a session of another agent,
   * `INVALID_ARGUMENT` naming the field, `TOO_LARGE`, `SERVER_UNAVAILABLE`; with `onExisting: 'use'` `SESSION_FULL`.
   * When it may have been started all the same, `details.sessionId` and `details.messageId` are the ids to repeat it with
   */
  async start<CONTEXT extends object = object, OUTPUT = unknown>(
    agent: string | StartedAgent<CONTEXT, OUTPUT>,
    options: StartOptions<NoInfer<CONTEXT>> = {},
  ): Promise<Session<OUTPUT>> {
    const id = options.id === undefined ? `session-${randomUUID()}` : options.id;
    checkNewId(id);
    checkOptions('start', options);
    const sent = await this.#stored(id, options);
    const input = sessionInput(typeof agent === 'string' ? agent : agent.name, sent);
    if (typeof agent !== 'string') await checkStart(agent, input);
    // A running session takes a message with an id once, however often it is sent.
    if (options.onExisting === 'use' && input.message !== undefined) input.message = withId(input.message);
    if (options.id !== undefined) await this.#refuseThread(id);
    return this.#start<OUTPUT>(id, input, options, {
      workflowIdConflictPolicy: options.onExisting === 'use' ? 'USE_EXISTING' : 'FAIL',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    });
  }

  /**
   * Starts another session from a checkpoint. Its effects have keys of their own. A mutation that was open at the checkpoint
   * waits for a person, and approvals wait again.
   *
   * @throws PerdureError as {@link Sessions.start}; `SESSION_NOT_FOUND`, `CHECKPOINT_NOT_FOUND` for a checkpoint that is not
   * of this session
   */
  async fork(from: { sessionId: string; checkpointId: string }, options: ForkOptions): Promise<Session> {
    const id = options.id ?? `session-${randomUUID()}`;
    checkNewId(id);
    checkOptions('fork', options);
    const origin = originOf('fork', from, options);
    const sent = await this.#stored(id, options);
    // Invalid input fails before anything is sent.
    sessionInput(options.agent ?? 'the same', sent, origin);
    if (options.id !== undefined) await this.#refuseThread(id);
    const agent = await this.#agentOf(from, options);
    await this.#checkOrigin(from, options);
    const archived = await this.#archived(from, options, false);
    const input = sessionInput(agent, sent, { ...origin, ...archived });
    return this.#start(id, input, options, {
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    });
  }

  /**
   * Takes a session back to one of its checkpoints. The present run is sealed and ended. The successor has the same id and
   * keys: effects from after the checkpoint answer them, so nothing is done again. What was spent stays spent.
   * `effectsSince` lists these effects beforehand. After an interrupted call the session may be ended without a successor:
   * call it again.
   *
   * @throws PerdureError `SESSION_BUSY` while a mutation is open; `CONFLICT` when somebody else has taken it back;
   * `SESSION_NOT_FOUND`, `CHECKPOINT_NOT_FOUND`. Then nothing has changed
   */
  async rewind(from: { sessionId: string; checkpointId: string }, options: ForkOptions): Promise<Session> {
    return this.#rewind(from, options);
  }

  /**
   * Undoes the effects of a session and ends it, as {@link Session.cancel} does with `undo`. A session that has ended goes on
   * from its last checkpoint, in a new run that undoes and ends: its model is not asked.
   *
   * @param input - `undo`: `true`, and a person approves each; or the digest of {@link Session.undoPlan}, which approves the list.
   * @throws PerdureError `SESSION_NOT_FOUND`; `CONFLICT` when somebody else has just begun the same; `INVALID_ARGUMENT`
   */
  async undo(sessionId: string, input: CancelInput & { undo: Exclude<UndoInput, false> }): Promise<Session> {
    const session = this.get(sessionId);
    // Without it, a session that has ended would go on.
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
      // It has ended before it did anything.
      if (last === null) return session;
      const from = { sessionId, checkpointId: `${runId}:${last}` };
      return await this.#rewind(from, { by, reason, taskQueue }, { cancel: undo, ...defined({ verified }) });
    } catch (error) {
      throw sessionError(sessionId, error);
    }
  }

  async #rewind(
    from: { sessionId: string; checkpointId: string },
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
    const sent = await this.#stored(sessionId, options);
    // Invalid input fails before the session is touched.
    sessionInput(options.agent ?? 'the same', sent, origin);
    const agent = await this.#agentOf(from, options);
    await this.#checkOrigin(from, options);
    // Read first, so that of two simultaneous rewinds one finds that this is no longer the last run.
    const leaves = await this.#sealLast(sessionId, options);
    // A thread may now have the id of a session that only an archive has.
    if (leaves === null) await this.#refuseThread(sessionId);
    const archived = await this.#archived(from, options, leaves === null);
    const input = sessionInput(agent, sent, {
      ...origin,
      ...(leaves === null ? {} : { leaves }),
      ...archived,
    });
    if (leaves !== null) await this.#end(sessionId, leaves, `${TAKEN_BACK}${from.checkpointId}`);
    try {
      return await this.#start(sessionId, input, options, {
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
      const start = await readStart(this.#client, { workflowId: sessionId, runId: now });
      if (start?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId !== last) break;
      last = now;
    }
    return last;
  }

  /** Stops a run from issuing anything. A closed run issues nothing anyway. */
  async #seal(sessionId: string, runId: string, { by, reason }: ForkOptions): Promise<void> {
    try {
      await new Session(this.#client, sessionId, runId).seal({ by, reason });
    } catch (error) {
      const closed = isPerdureError(error, 'SESSION_CLOSED') || isPerdureError(error, 'SESSION_NOT_FOUND');
      if (!closed && !isBeingTakenBack(error)) throw error;
    }
  }

  /** Refuses a checkpoint of another session: a session from it could not be read. */
  async #checkOrigin(
    { sessionId, checkpointId }: { sessionId: string; checkpointId: string },
    { saver }: ForkOptions,
  ): Promise<void> {
    const { runId, eventId } = parseCheckpointId(checkpointId);
    try {
      if (await isCompletedTask(this.#client, { workflowId: sessionId, runId }, eventId)) return;
    } catch (error) {
      throw sessionError(sessionId, error);
    }
    if (saver !== undefined && (await saver.get(sessionId, { checkpointId })) !== null) return;
    throw new PerdureError(
      'CHECKPOINT_NOT_FOUND',
      `Session ${sessionId} has no checkpoint ${checkpointId}. List its checkpoints again`,
    );
  }

  /** Ends the run that a successor leaves, and no other: the effects of a run in between would be lost. */
  async #end(sessionId: string, runId: string, reason: string): Promise<void> {
    try {
      await this.#client.workflow.getHandle(sessionId, runId).terminate(reason);
    } catch (error) {
      // It has closed by itself, or somebody else has ended it.
      if (!(error instanceof WorkflowNotFoundError)) throw sessionError(sessionId, error);
    }
    if ((await this.#runOf(sessionId)) !== runId) throw takenBack(sessionId);
  }

  /** Refuses the id of a thread: a session would hide its checkpoints. */
  async #refuseThread(id: string): Promise<void> {
    try {
      const thread = await this.#client.workflow.getHandle(threadWorkflowId(id)).describe();
      if (thread.status.name !== 'RUNNING') return;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return;
      throw sessionError(id, error);
    }
    throw new PerdureError(
      'CONFLICT',
      `id: ${id} is a thread of checkpoints, or one that was deleted less than a day ago. Choose another id`,
      { details: { field: 'id' } },
    );
  }

  /** A message for one agent must not reach another agent, or a session with another context. */
  async #refuseOther(id: string, { agent, context, pool }: SessionInput): Promise<void> {
    const started = ((await readStartInput(this.#client, id)) ?? {}) as Partial<SessionInput>;
    const { agent: other } = started;
    if (typeof other !== 'string') return;
    if (other !== agent) {
      throw new PerdureError(
        'CONFLICT',
        `id: session ${id} belongs to agent ${other}, not to ${agent}. Choose another id, or start it with ${other}`,
        { details: { field: 'id' } },
      );
    }
    const shared = started.carried === undefined ? started.pool : started.carried.pool?.id;
    if (pool !== undefined && pool !== shared) {
      const shares = shared === undefined ? 'shares none' : `shares pool ${shared}`;
      const message = `pool: session ${id} ${shares}. Choose another id, or leave the pool out`;
      throw new PerdureError('CONFLICT', message, { details: { field: 'pool' } });
    }
    if (context === undefined) return;
    const own = started.carried?.context ?? started.context;
    // A run that continues from a checkpoint without a context of its own has that checkpoint's context.
    const inherits = own === undefined && started.origin !== undefined;
    const its = inherits ? (await new Session(this.#client, id).state()).context : own;
    if (canonicalJson(context) === canonicalJson(its ?? {})) return;
    throw new PerdureError(
      'CONFLICT',
      `context: session ${id} runs with another context. Choose another id, or leave the context out`,
      { details: { field: 'context' } },
    );
  }

  /** The session's own agent, or the named one if the session is gone. Another name is refused. */
  async #agentOf(
    { sessionId, checkpointId }: { sessionId: string; checkpointId: string },
    { agent, saver }: ForkOptions,
  ): Promise<string> {
    const started = await readStartInput(this.#client, sessionId).catch((error: unknown) => {
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
      return (await this.#client.workflow.getHandle(sessionId, runId).describe()).runId;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw sessionError(sessionId, error);
    }
  }

  /** Stores an archived checkpoint where workers can read it. */
  async #archived(
    { sessionId, checkpointId }: { sessionId: string; checkpointId: string },
    { saver, taskQueue = this.#taskQueue }: ForkOptions,
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
      const archived = await storeParts(this.#client, {
        key: `origin/${randomUUID()}`,
        content: text,
        what: `${checkpointId} of ${sessionId}`,
        taskQueue,
        // No worker gets these workflows, and they close by themselves.
        ...ORIGIN_STAYS,
      });
      // Runs are ordered by the run that each has left.
      return last === null ? { archived } : { archived, leaves: parseCheckpointId(last.id).runId };
    } catch (error) {
      throw sessionError(sessionId, error);
    }
  }

  async #start<OUTPUT>(
    id: string,
    input: SessionInput,
    options: StartOptions,
    policies: Pick<WorkflowStartOptions, 'workflowIdConflictPolicy' | 'workflowIdReusePolicy'>,
  ): Promise<Session<OUTPUT>> {
    const { message, ...rest } = input;
    const started = startArguments(id, input, { taskQueue: this.#taskQueue, ...defined(options) });
    const start = { ...started, ...policies };
    try {
      if (options.onExisting === 'use') await this.#refuseOther(id, input);
      if (options.onExisting === 'use' && message !== undefined) {
        // A session that exists ignores its start arguments, so the message is a signal.
        const signal = { signal: SIGNAL.send, signalArgs: [message] as [unknown], args: [rest] as [unknown] };
        await checkHeadroom(this.#client, this.#client.workflow.getHandle(id), SIGNAL.send);
        await this.#client.workflow.signalWithStart(WORKFLOW.session, { ...start, ...signal });
      } else await this.#client.workflow.start(WORKFLOW.session, { ...start, args: [input] });
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) {
        throw new PerdureError(
          'SESSION_EXISTS',
          `id: session ${id} exists. Choose another id, or set onExisting: 'use' to get the running session`,
          { cause: error },
        );
      }
      const messageId = message?.id;
      const ids = messageId === undefined ? `id ${id}` : `id ${id} and the message's ${messageId}`;
      const advice = `It may have happened all the same. Repeat it with the ${ids}: it happens once`;
      throw retryHint(sessionError(id, error), advice, {
        sessionId: id,
        ...defined({ messageId }),
      });
    }
    return new Session(this.#client, id, undefined, this.#stores);
  }

  /** Options whose first message has its files in the store. */
  async #stored(
    id: string,
    { message, ...options }: StartOptions,
  ): Promise<Omit<StartOptions, 'message'> & { message?: SendInput }> {
    if (message === undefined) return options;
    const stores = { client: this.#client, values: this.#stores.values };
    return { ...options, message: await storedMessage(message, id, stores) };
  }

  /** A handle of a session, which may not exist. @throws PerdureError `INVALID_ARGUMENT` */
  get(id: string): Session {
    checkSessionId(id);
    return this.#session(id);
  }

  /** A handle of a pool of money, which may not exist. @throws PerdureError `INVALID_ARGUMENT` */
  pool(id: string): Pool {
    return new Pool(this.#client, id, this.#taskQueue);
  }

  #session(id: string): Session {
    return new Session(this.#client, id, undefined, this.#stores);
  }

  /** Sessions, newest first, from Temporal's visibility, which may lag by a second. */
  list(options: SessionListOptions = {}): AsyncGenerator<SessionSummary> {
    return listSessions(this.#client, options);
  }

  /**
   * Everything that waits for a person, over all sessions: approvals, calls with an unknown outcome, missing tools, budgets and
   * other waits. What expires first comes first, then what has waited longest. Visibility may lag by a second.
   */
  inbox(options: InboxOptions = {}): Promise<Inbox> {
    return this.#inbox.read(options);
  }
}
