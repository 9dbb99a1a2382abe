/** A harness for tests of your own agents: a real Temporal server, real workers, and a scripted model. */
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import {
  DefaultLogger,
  type NativeConnection,
  type NativeConnectionOptions,
  Runtime,
} from '@temporalio/worker';
import type { DefinedAgent } from '../../agent/index.ts';
import { type Session, Sessions, type StartOptions } from '../../client/index.ts';
import { isUnanswered, PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import type { Phase } from '../../contract/state.ts';
import type { SessionView } from '../../contract/views.ts';
import { SESSION_SEARCH_ATTRIBUTES, startServer } from '../../server/index.ts';
import { createWorker, openConnection, type SessionWorkerOptions } from '../../worker/index.ts';
import {
  type Script,
  type ScriptedModel,
  type ScriptedTurn,
  scriptedTurns,
  startScriptedModel,
} from '../scripted-model/index.ts';
import { scriptedAgents } from './scripted-agents.ts';
import { startWorkerProcess, type WorkerProcess } from './worker-process.ts';

/**
 * How long {@link Harness.until} pauses between two checks, in milliseconds. The pauses grow, because each check costs.
 */
const PAUSE_MS = { first: 10, growth: 1.3, most: 250 };

/** Options of {@link createHarness}. */
export interface HarnessOptions {
  /** The model's replies: one turn after the other, or a function of the request. */
  readonly script: Script | readonly ScriptedTurn[];
  /** The agents of workers in this process. Their models are replaced by the scripted one. */
  readonly agents?: readonly DefinedAgent[];
  /**
   * Path or URL of a module (TypeScript or JavaScript) that exports the agents of worker processes, one by one or in a
   * list. It may also export `workerOptions`.
   */
  readonly module?: string | URL;
  /** A server to use. Default: an in-memory dev server that starts and stops with the harness. */
  readonly server?: { readonly address: string; readonly namespace?: string };
  /** Environment variables of worker processes, in addition to this process's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** JSONL file to which the model's endpoint appends each call ({@link RecordLine}), synced before it answers. */
  readonly recordFile?: string;
  /** How long {@link Harness.until} waits, in milliseconds. Default: one minute. */
  readonly timeoutMs?: number;
}

/** Options of a worker process. */
export interface HarnessProcessOptions {
  /**
   * Where to hold the worker: `before <tool>` (the worker has the call and has not run it),
   * `after <tool>` (the tool has returned, nothing is recorded), `before verify <tool>`, `after verify <tool>`,
   * `before model` (the worker has the activity, and has run none of its reads), `model request` (its reads have ended,
   * and the request is about to be sent), `after model`, or a name that a tool gives to `breakpoint()`.
   */
  readonly breakAt?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** How it connects, if not as the harness does: for example through a wire. Plain JSON. */
  readonly connection?: NativeConnectionOptions;
  /** The model's URL, if not the harness's own endpoint: for example a wire in front of it. */
  readonly modelUrl?: string;
}

/** A worker in the test's own process. */
export interface HarnessWorker {
  /** Finishes the calls in flight and stops. */
  stop(): Promise<void>;
}

/**
 * The verbs of a test. Each harness has a task queue of its own, so that tests can share a server.
 */
export interface Harness {
  readonly model: ScriptedModel;
  readonly client: Client;
  readonly sessions: Sessions;
  readonly taskQueue: string;
  readonly address: string;
  readonly namespace: string;
  /** Starts a session; by default with an id that no other test has. */
  startSession(agent: string, options?: StartOptions): Promise<Session>;
  /** Starts a worker in this process, with the harness's agents or others. */
  startWorker(options?: Partial<SessionWorkerOptions>): Promise<HarnessWorker>;
  /** Starts a worker process, which can be crashed, frozen and woken. */
  startWorkerProcess(options?: HarnessProcessOptions): Promise<WorkerProcess>;
  /**
   * Waits until a session is in one of these phases, or until a condition on its view holds. This needs a worker, which
   * may still be starting.
   *
   * @throws PerdureError `NO_WORKER` with the last view (`details.view`) when that does not happen in time;
   * `SESSION_NOT_FOUND`.
   */
  until(
    session: Session,
    ...goal: readonly Phase[] | readonly [(view: SessionView) => boolean]
  ): Promise<SessionView>;
  /** Stops everything that the harness has started. */
  stop(): Promise<void>;
}

/**
 * Creates a harness: a Temporal server, a scripted model, workers and a client.
 *
 * ```ts
 * const harness = await createHarness({
 *   module: new URL('./agents.ts', import.meta.url),
 *   script: [{ toolCalls: [{ name: 'refund', args: { chargeId: 'ch_1', cents: 900 } }] }, { text: 'Done.' }],
 * });
 * onTestFinished(() => harness.stop());
 * const worker = await harness.startWorkerProcess({ breakAt: ['after refund'] });
 * const session = await harness.startSession('support', { message: 'Refund ch_1.' });
 * await worker.reached('after refund'); // the refund has happened, and nothing is recorded yet
 * await worker.crash();
 * await harness.startWorkerProcess();
 * await harness.until(session, 'idle');
 * // … and there is one refund
 * ```
 *
 * Only the model is mocked, and it answers over real HTTP. Tests that share a server do not disturb each other, except
 * with tools of scope `global`: their effects are shared in a namespace, so give each test arguments or a namespace of
 * its own. Worker processes end with the process that started them. A frozen one survives when that process is killed.
 *
 * @throws PerdureError `SERVER_UNAVAILABLE` when no server is given and none can be started.
 */
export async function createHarness(options: HarnessOptions): Promise<Harness> {
  quiet();
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (let end = stops.pop(); end !== undefined; end = stops.pop()) await end();
  };
  try {
    return await open(options, stops, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function open(
  options: HarnessOptions,
  stops: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<Harness> {
  const { address, namespace } = await serverFor(options, stops);
  const { script } = options;
  const model = await startScriptedModel({
    script: typeof script === 'function' ? script : scriptedTurns(script),
    ...defined({ recordFile: options.recordFile }),
  });
  stops.push(() => model.stop());
  const connection = await Connection.connect({ address });
  stops.push(() => connection.close());
  const client = new Client({ connection, namespace });
  const taskQueue = `harness-${randomUUID()}`;
  const sessions = new Sessions(client, { taskQueue });
  let native: NativeConnection | undefined;
  let ids = 0;
  return {
    model,
    client,
    sessions,
    taskQueue,
    address,
    namespace,
    startSession: (agent, start = {}) =>
      sessions.start(agent, { id: `${agent}-${++ids}-${taskQueue}`, ...start }),
    startWorker: async (workerOptions = {}) => {
      if (native === undefined) {
        const opened = await openConnection({ address });
        stops.push(() => opened.close());
        native = opened;
      }
      const agents = scriptedAgents(workerOptions.agents ?? options.agents ?? [], model.url);
      const connected = { connection: native, namespace, taskQueue };
      const worker = await createWorker({ ...workerOptions, ...connected, agents });
      const run = worker.run();
      const end = async (): Promise<void> => {
        if (worker.getState() === 'RUNNING') worker.shutdown();
        await run;
      };
      stops.push(end);
      return { stop: end };
    },
    startWorkerProcess: async (started = {}) => {
      const { breakAt = [], env = {}, connection: own = { address }, modelUrl = model.url } = started;
      const module = moduleUrl(options.module);
      return startWorkerProcess(
        { connection: own, namespace, taskQueue, module, modelUrl, breakAt },
        { ...options.env, ...env },
        (crash) => stops.push(crash),
      );
    },
    until: (session, ...goal) => waitFor(session, goal, options.timeoutMs ?? 60_000),
    stop,
  };
}

async function serverFor(
  { server }: HarnessOptions,
  stops: (() => Promise<unknown>)[],
): Promise<{ address: string; namespace: string }> {
  if (server !== undefined) return { address: server.address, namespace: server.namespace ?? 'default' };
  const started = await startServer({ inMemory: true, searchAttributes: SESSION_SEARCH_ATTRIBUTES });
  stops.push(() => started.stop());
  return started;
}

function moduleUrl(module: string | URL | undefined): string {
  if (module === undefined) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      'module is missing: a worker process needs a module that exports its agents, as createHarness({ module: … })',
    );
  }
  const text = String(module);
  return text.startsWith('file:') ? text : pathToFileURL(text).href;
}

async function waitFor(
  session: Session,
  goal: readonly Phase[] | readonly [(view: SessionView) => boolean],
  timeoutMs: number,
): Promise<SessionView> {
  const deadline = performance.now() + timeoutMs;
  let last: SessionView | undefined;
  for (let pause = PAUSE_MS.first; performance.now() < deadline; pause *= PAUSE_MS.growth) {
    const view = await look(session);
    if (view !== undefined && goal.some((g) => (typeof g === 'function' ? g(view) : g === view.phase))) {
      return view;
    }
    last = view ?? last;
    await new Promise((resolve) => setTimeout(resolve, Math.min(pause, PAUSE_MS.most)));
  }
  throw new PerdureError(
    'NO_WORKER',
    last === undefined
      ? `No worker answered for session ${session.id} in ${timeoutMs} ms. Start one`
      : `Session ${session.id} did not reach the expected state in ${timeoutMs} ms: ${JSON.stringify(last, null, 1)}`,
    { details: { view: last ?? null } },
  );
}

/** The session's view, or `undefined` when no worker answers yet: one may be about to start. */
async function look(session: Session): Promise<SessionView | undefined> {
  try {
    return await session.state();
  } catch (error) {
    if (isUnanswered(error)) return undefined;
    throw error;
  }
}

let silenced = false;

/**
 * Temporal has one runtime per process, and whoever installs it first configures it. A test's own configuration stays.
 */
function quiet(): void {
  if (silenced) return;
  silenced = true;
  try {
    Runtime.install({ logger: new DefaultLogger('ERROR') });
  } catch {
    // Installed before.
  }
}
