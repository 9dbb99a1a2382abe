import { hostname } from 'node:os';
import {
  type ActivityInterceptorsFactory,
  type BundleOptions,
  type NativeConnection,
  type ReplayWorkerOptions,
  Runtime,
  Worker,
  type WorkerOptions,
  type WorkerPlugin,
} from '@temporalio/worker';
import {
  backgroundTools,
  createActivities,
  HandedPasts,
  IssuedCalls,
  RateGate,
  readValueTool,
  TranscriptMemory,
} from '../activities/index.ts';
import {
  type AgentRuntime,
  type DefinedAgent,
  hasBackground,
  type ModelRegistry,
  plainToolsWarning,
  resolveAgent,
  withSubAgents,
} from '../agent/index.ts';
import { PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import type { LiveChannel } from '../contract/live-text.ts';
import { READ_VALUE_TOOL, type ValueStore } from '../contract/values.ts';
import { flush, observeSessions } from '../telemetry/index.ts';
import { checkWebhooks, policyFor, type Webhook } from '../webhooks/index.ts';
import { bundleDigest, type DeploymentOptions, versionOptions } from './deployment.ts';
import { withEncodedFailures } from './encoded-failures.ts';
import { InFlightJournal, journalDirectory, recoverPredecessors } from './in-flight.ts';
import { modelsFromEnvironment } from './models.ts';
import { partitionsOf, pollers, USUAL_PARTITIONS, workflowPollers } from './pollers.ts';
import { type RateLimit, windowLimits } from './rate-limits.ts';
import { SANDBOX_TIME_LIMIT } from './sdk-internals.ts';
import { countSessions, KnownAttributes } from './search-attributes.ts';
import { NOWHERE, sinksOf } from './sinks.ts';
import { isOwnBundle, runsOwnCode, withSessionWorkflows, workflowsFor } from './workflow-bundle.ts';

/** Options of {@link PerdurePlugin} and {@link createWorker}. */
export interface PerdurePluginOptions {
  /** The agents whose sessions this worker runs. */
  agents: readonly DefinedAgent[];
  /** Resolves the names of models, as the AI SDK's provider registry does. Default: the environment's endpoint. */
  models?: ModelRegistry;
  /** The most memory for transcripts, in bytes. Default: 256 MB. */
  memoryBytes?: number;
  /**
   * The directory in which the workers of a host record their calls in flight, for their successors. Default: a
   * directory of this user in the system's temporary directory. `false`: recovery waits for heartbeats.
   */
  journal?: string | false;
  /** The worker's version, for deploys that keep old and new workflow code apart. Default: the worker has none. */
  deployment?: DeploymentOptions;
  /**
   * Stores files, and results that are too large for the history: in a directory that all workers and clients share, in
   * PostgreSQL, or in S3. Agents then have the built-in tool `read_value`. Without a store, large results are
   * shortened.
   */
  values?: ValueStore;
  /** Where notifications go, by name. Do not change the names: all workers of a task queue need the same ones. */
  webhooks?: Readonly<Record<string, Webhook>>;
  /**
   * The rate limits of providers' keys, by provider (`openai`) or by model (`openai:gpt-5`), such as
   * `{ openai: { tokensPerMinute: 60_000 } }`. All sessions of the task queue share a limit, and their tenants share it
   * equally. Default: none.
   */
  rateLimits?: Readonly<Record<string, RateLimit>>;
  /** The address of `perdure serve`, for links in notifications. Default: `PERDURE_CONSOLE_URL`, or no links. */
  consoleUrl?: string;
  /**
   * Carries the live text of the models to streams in other processes, such as `RedisLiveChannel`. Give the clients
   * one, too. Default: streams elsewhere read heartbeats, which then hold the text.
   */
  live?: LiveChannel;
}

const MEMORY_BYTES = 256_000_000;

/**
 * Adds agent sessions to a Temporal worker of your own: their activities, sinks, settings and workflows. Workflows of
 * your own (`workflowsPath`), workflow interceptors, and payload or failure converters are bundled with them. A
 * `workflowBundle` must have been made with this plugin: `bundleWorkflowCode({ workflowsPath, plugins: [plugin] })`.
 *
 * @throws PerdureError `INVALID_DEFINITION` from `Worker.create`: an agent cannot be resolved, two agents have one
 * name, or the `workflowBundle` does not hold the workflows of sessions. From `worker.run`: another plugin has added
 * workflow interceptors after this one, or the worker is of another copy of the SDK.
 *
 * @example
 * ```ts
 * import { Worker } from '@temporalio/worker';
 * import { defineAgent, PerdurePlugin } from 'perdure';
 *
 * const greeter = defineAgent({ name: 'greeter', model: 'openai:gpt-5', instructions: 'Greet.' });
 * const worker = await Worker.create({
 *   taskQueue: 'perdure',
 *   workflowsPath: new URL('./workflows.ts', import.meta.url).pathname,
 *   plugins: [new PerdurePlugin({ agents: [greeter] })],
 * });
 * await worker.run();
 * ```
 */
export class PerdurePlugin implements WorkerPlugin {
  readonly name = 'perdure';
  readonly #options: PerdurePluginOptions;
  /** One plugin may serve several workers. Each has a journal, found by its interceptor. */
  readonly #journals = new Map<ActivityInterceptorsFactory, InFlightJournal>();

  constructor(options: PerdurePluginOptions) {
    this.#options = options;
  }

  async configureWorker(given: WorkerOptions): Promise<WorkerOptions> {
    const options = withEncodedFailures(given);
    const { agents, models, memoryBytes = MEMORY_BYTES, values, live } = this.#options;
    const { webhooks = {}, consoleUrl = process.env['PERDURE_CONSOLE_URL'] } = this.#options;
    checkWebhooks(webhooks);
    const rates = this.#options.rateLimits && new RateGate(windowLimits(this.#options.rateLimits));
    const { connection, namespace = 'default', taskQueue } = options;
    const memory = new TranscriptMemory(memoryBytes);
    const issued = new IssuedCalls();
    const handed = new HandedPasts();
    // Do this first, and alone: after an error the caller may close the connection.
    const runtimes = await resolveAgents(agents, models ?? modelsFromEnvironment(), { values, webhooks });
    const attributes =
      connection === undefined ? null : new KnownAttributes(connection, namespace, options.dataConverter);
    const [partitions, workflows, journal] = await Promise.all([
      connection === undefined ? USUAL_PARTITIONS : partitionsOf(connection, namespace, taskQueue),
      workflowsFor(options),
      this.#recover(connection, { namespace, taskQueue }),
    ]);
    const version = await this.#version(options, workflows);
    const own = createActivities({
      agents: runtimes,
      memory,
      issued,
      handed,
      values,
      live,
      rates,
      webhooks: { webhooks, consoleUrl },
      searchAttributes: async () => attributes?.now() ?? [],
      began: (token) => journal?.began(token),
    });
    if (journal !== null) this.#journals.set(journal.interceptor, journal);
    return {
      identity: `${process.pid}@${hostname()}`,
      // After a worker's death, others get its cached workflows after this time.
      stickyQueueScheduleToStartTimeout: '1s',
      // Each open poll of a frozen worker swallows a task until a time-out, so few polls are open at rest. But a task
      // may wait for two seconds in a partition without a poll. Sticky polls swallow only the frozen worker's own
      // tasks.
      ...workflowPollers(partitions + 1),
      activityTaskPollerBehavior: pollers(partitions),
      // Live text and cancellations travel with heartbeats.
      maxHeartbeatThrottleInterval: 250,
      defaultHeartbeatThrottleInterval: 250,
      shutdownGraceTime: '10s',
      ...SANDBOX_TIME_LIMIT,
      ...version,
      ...options,
      ...workflows,
      activities: {
        ...options.activities,
        ...own,
      },
      sinks: { ...options.sinks, ...sinksOf({ memory, issued, handed, attributes, rates }) },
      ...(journal === null
        ? {}
        : {
            interceptors: {
              ...options.interceptors,
              activity: [journal.interceptor, ...(options.interceptors?.activity ?? [])],
            },
          }),
    };
  }

  /**
   * For `Worker.runReplayHistories`, with which you check before an upgrade that sessions in flight replay. Adds the
   * sessions' workflows, unless the options name workflows. No agents are needed.
   */
  async configureReplayWorker(given: ReplayWorkerOptions): Promise<ReplayWorkerOptions> {
    const options = withEncodedFailures(given);
    return {
      ...SANDBOX_TIME_LIMIT,
      ...options,
      ...(await workflowsFor(options)),
      sinks: { ...NOWHERE, ...options.sinks },
    };
  }

  /** Adds the sessions' workflows to a bundle of your own. */
  configureBundler(options: BundleOptions): BundleOptions {
    return withSessionWorkflows(options);
  }

  async runWorker(worker: Worker, next: (worker: Worker) => Promise<void>): Promise<void> {
    assertComplete(worker);
    const { connection, namespace } = worker.options;
    const unobserve = connection && observeSessions(namespace, () => countSessions(connection, namespace));
    try {
      // A run that throws may leave calls behind, so its journal stays for the next process.
      await next(worker);
    } finally {
      unobserve?.();
      await flush();
    }
    for (const interceptor of worker.options.interceptors.activity) {
      await this.#journals.get(interceptor)?.close();
      this.#journals.delete(interceptor);
    }
  }

  /** The worker's version. Without a deployment, the build id is the digest of our bundle. */
  async #version(
    options: WorkerOptions,
    workflows: Pick<WorkerOptions, 'workflowBundle'> | undefined,
  ): Promise<Partial<WorkerOptions>> {
    const { deployment } = this.#options;
    const bundle = (workflows ?? options).workflowBundle;
    if (deployment !== undefined) return versionOptions(deployment, options, bundle);
    if (options.workerDeploymentOptions !== undefined || workflows === undefined || bundle === undefined)
      return {};
    return { buildId: await bundleDigest(bundle) };
  }

  async #recover(
    connection: NativeConnection | undefined,
    { namespace, taskQueue }: { namespace: string; taskQueue: string },
  ): Promise<InFlightJournal | null> {
    const { journal } = this.#options;
    if (journal === false || connection === undefined) return null;
    // The worker itself reports a namespace that cannot be described.
    const described = await connection.workflowService.describeNamespace({ namespace }).catch(() => null);
    const namespaceId = described?.namespaceInfo?.id;
    if (!namespaceId) return null;
    // The journal only makes recovery faster.
    const unavailable = (whose: string) => (error: unknown) => {
      Runtime.instance().logger.warn(
        `journal: ${String(error)}: calls that ${whose} wait for their heartbeat timeouts`,
      );
      return null;
    };
    try {
      const directory = await journalDirectory({
        namespaceId,
        taskQueue,
        ...defined({ directory: journal }),
      });
      await recoverPredecessors(connection, namespace, directory).catch(unavailable('dead workers left'));
      return await InFlightJournal.open(directory);
    } catch (error) {
      return unavailable('this worker leaves when it dies')(error);
    }
  }
}

/** Refuses a worker that would ignore some of its options. */
function assertComplete(worker: Worker): void {
  if (!(worker instanceof Worker)) {
    throw new PerdureError(
      'INVALID_DEFINITION',
      'The worker uses another copy of @temporalio/worker than perdure. Keep one: npm ls @temporalio/worker, then npm dedupe.',
    );
  }
  const { workflowBundle } = worker.options;
  const ours = workflowBundle && 'codePath' in workflowBundle && isOwnBundle(workflowBundle.codePath);
  if (!ours || !runsOwnCode(worker.options)) return;
  throw new PerdureError(
    'INVALID_DEFINITION',
    'A plugin added workflow interceptors or a converter after PerdurePlugin had chosen its bundle. List PerdurePlugin last.',
  );
}

async function resolveAgents(
  agents: readonly DefinedAgent[],
  models: ModelRegistry | undefined,
  { values, webhooks }: { values: ValueStore | undefined; webhooks: Readonly<Record<string, Webhook>> },
): Promise<Map<string, AgentRuntime>> {
  const builtIn = values === undefined ? {} : { [READ_VALUE_TOOL]: readValueTool(values) };
  const runtimes = new Map<string, AgentRuntime>();
  for (const agent of withSubAgents(agents)) {
    if (runtimes.has(agent.name)) {
      throw new PerdureError('INVALID_DEFINITION', `agents: two agents are named ${agent.name}: rename one`);
    }
    const own = hasBackground(agent) ? { ...builtIn, ...backgroundTools() } : builtIn;
    const runtime = await resolveAgent(agent, models, own, policyFor(webhooks, agent.name));
    runtimes.set(agent.name, runtime);
    const warning = plainToolsWarning(runtime.definition);
    if (warning !== null) Runtime.instance().logger.warn(warning);
  }
  return runtimes;
}
