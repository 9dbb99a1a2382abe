/** Starts sessions. A start refuses an id that is taken, and is safe to repeat. */
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { PerdureError } from '../contract/errors.ts';
import type { SendInput } from '../contract/inputs.ts';
import { canonicalJson, defined } from '../contract/json.ts';
import { DEFAULT_TASK_QUEUE, SIGNAL, WORKFLOW } from '../contract/names.ts';
import type { SessionInput } from '../contract/session-input.ts';
import { threadWorkflowId } from '../contract/thread.ts';
import { command } from '../session/commands.ts';
import { retryHint, sessionError } from '../temporal/errors.ts';
import { findExecution } from '../temporal/executions.ts';
import { readStartInput } from '../temporal/index.ts';
import { checkHeadroom } from './checks.ts';
import { storedMessage } from './message-parts.ts';
import { Session, type SessionStores } from './session.ts';
import { type StartOptions, startArguments } from './start-options.ts';

/** Starts the workflows of sessions on one task queue. */
export class SessionStarter {
  readonly client: Client;
  readonly taskQueue: string;
  readonly stores: SessionStores;

  constructor(client: Client, { taskQueue, ...stores }: { taskQueue?: string } & SessionStores) {
    this.client = client;
    this.taskQueue = taskQueue ?? DEFAULT_TASK_QUEUE;
    this.stores = stores;
  }

  /** Starts a session; with `onExisting: 'use'`, a running one gets the message. Throws as `Sessions.start` does. */
  async start<OUTPUT>(
    id: string,
    input: SessionInput,
    options: StartOptions,
    policies: Pick<WorkflowStartOptions, 'workflowIdConflictPolicy' | 'workflowIdReusePolicy'>,
  ): Promise<Session<OUTPUT>> {
    const { message, ...rest } = input;
    const started = startArguments(id, input, { taskQueue: this.taskQueue, ...defined(options) });
    const start = { ...started, ...policies };
    try {
      if (options.onExisting === 'use') await this.#refuseOther(id, input);
      if (options.onExisting === 'use' && message !== undefined) {
        // A session that exists ignores its start arguments, so the message is a signal.
        const signal = { signal: SIGNAL.send, signalArgs: [message] as [unknown], args: [rest] as [unknown] };
        await checkHeadroom(this.client, this.client.workflow.getHandle(id), SIGNAL.send);
        await this.client.workflow.signalWithStart(WORKFLOW.session, { ...start, ...signal });
      } else await this.client.workflow.start(WORKFLOW.session, { ...start, args: [input] });
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) throw await this.#existing(id, error);
      const messageId = message?.id;
      const ids = messageId === undefined ? `id ${id}` : `id ${id} and the message's ${messageId}`;
      const advice = `It may have happened all the same. Repeat it with the ${ids}: it happens once`;
      throw retryHint(sessionError(id, error), advice, {
        sessionId: id,
        ...defined({ messageId }),
      });
    }
    return new Session(this.client, id, undefined, this.stores);
  }

  /** Stores the files of the first message. @returns the options with the stored message */
  async stored(
    id: string,
    { message, ...options }: StartOptions,
  ): Promise<Omit<StartOptions, 'message'> & { message?: SendInput }> {
    if (message === undefined) return options;
    const stores = { client: this.client, values: this.stores.values };
    return { ...options, message: await storedMessage(message, id, stores) };
  }

  /** Refuses the id of a thread: a session would hide its checkpoints. */
  async refuseThread(id: string): Promise<void> {
    try {
      const thread = await this.client.workflow.getHandle(threadWorkflowId(id)).describe();
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

  /** The error of a start whose id is taken. */
  async #existing(id: string, cause: Error): Promise<PerdureError> {
    const found = await findExecution(this.client, id).catch(() => null);
    const message =
      found?.running === false
        ? `id: session ${id} has ended. Choose another id, or rewind it`
        : `id: session ${id} exists. Choose another id, or set onExisting: 'use' to get the running session`;
    return new PerdureError('SESSION_EXISTS', message, { cause });
  }

  /** A running session keeps what it was started with. A start that asks for anything else is refused. */
  async #refuseOther(id: string, { agent, context, pool, ...rest }: SessionInput): Promise<void> {
    const started = ((await readStartInput(this.client, id)) ?? {}) as Partial<SessionInput>;
    const { agent: other } = started;
    if (typeof other !== 'string') return;
    if (other !== agent) {
      throw new PerdureError(
        'CONFLICT',
        `id: session ${id} belongs to agent ${other}, not to ${agent}. Choose another id, or start it with ${other}`,
        { details: { field: 'id' } },
      );
    }
    await this.#refuseSettings(id, rest);
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
    const its = inherits ? (await new Session(this.client, id).state()).context : own;
    if (canonicalJson(context) === canonicalJson(its ?? {})) return;
    throw new PerdureError(
      'CONFLICT',
      `context: session ${id} runs with another context. Choose another id, or leave the context out`,
      { details: { field: 'context' } },
    );
  }

  async #refuseSettings(
    id: string,
    { mode, scratchpadRoot, budget = {} }: Pick<SessionInput, 'mode' | 'scratchpadRoot' | 'budget'>,
  ): Promise<void> {
    const given = defined({ mode, scratchpadRoot, ...budget });
    if (Object.keys(given).length === 0) return;
    const state = await new Session(this.client, id).snapshot();
    // The start itself fails.
    if (state.status.kind !== 'active') return;
    const { limits } = state.budget;
    const own: Readonly<Record<string, unknown>> = {
      mode: state.mode,
      scratchpadRoot: state.scratchpadRoot,
      ...limits,
    };
    for (const [name, value] of Object.entries(given)) {
      const its = own[name] ?? null;
      if (value === its) continue;
      const isCap = Object.hasOwn(budget, name);
      const field = isCap ? `budget.${name}` : name;
      const has = its === null ? 'has none' : `has ${JSON.stringify(its)}`;
      const commands = isCap ? [command('budget', id)] : [];
      const change = isCap ? `. To change its caps: ${commands[0]}` : '';
      throw new PerdureError(
        'CONFLICT',
        `${field}: session ${id} exists, and ${has}. Choose another id, or leave it out${change}`,
        { details: { field, ...(isCap && { commands }) } },
      );
    }
  }
}
