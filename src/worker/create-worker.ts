import type { NativeConnectionOptions, Worker, WorkerOptions } from '@temporalio/worker';
import { defined } from '../contract/json.ts';
import { DEFAULT_TASK_QUEUE } from '../contract/names.ts';
import { closing, openConnection, whereTo } from './open-connection.ts';
import { PerdurePlugin, type PerdurePluginOptions } from './plugin.ts';
import { UntimedWorker } from './sdk-internals.ts';

/** Options of a worker of sessions, besides Temporal's own `WorkerOptions`. */
export interface SessionWorkerOptions extends PerdurePluginOptions, Omit<WorkerOptions, 'taskQueue'> {
  /**
   * The address of Temporal, if there is no `connection`. Default: `TEMPORAL_ADDRESS` or the user's Temporal config
   * file with its namespace, otherwise `localhost:7233`. Without TLS nothing is compressed, unless `grpcCompression`
   * says so.
   */
  address?: string | NativeConnectionOptions | undefined;
  /** Default: `perdure`. */
  taskQueue?: string;
}

/**
 * Creates a Temporal worker that runs agent sessions. Start it with `worker.run()`. At a shutdown, calls in flight have
 * ten seconds to end; the next worker recovers the others. A connection that `createWorker` opened is closed after the
 * run.
 *
 * @throws PerdureError `INVALID_DEFINITION` when an agent cannot be resolved or two have one name; `SERVER_UNAVAILABLE`
 * when no `connection` is given and the address does not answer.
 * @example
 * ```ts
 * import { createWorker, defineAgent } from 'perdure';
 *
 * const greeter = defineAgent({ name: 'greeter', model: 'openai:gpt-5', instructions: 'Greet.' });
 * const worker = await createWorker({ agents: [greeter], address: 'localhost:7233' });
 * await worker.run();
 * ```
 */
export async function createWorker(options: SessionWorkerOptions): Promise<Worker> {
  const {
    agents,
    models,
    memoryBytes,
    journal,
    deployment,
    values,
    live,
    webhooks,
    rateLimits,
    consoleUrl,
    address,
    taskQueue = DEFAULT_TASK_QUEUE,
    ...rest
  } = options;
  const found = rest.connection === undefined ? whereTo(address) : undefined;
  const connection = rest.connection ?? (await openConnection(found?.connection ?? {}));
  const plugin = new PerdurePlugin({
    agents,
    ...defined({ models, memoryBytes, journal, deployment, values, live, webhooks, rateLimits, consoleUrl }),
  });
  try {
    return await UntimedWorker.create({
      ...(found?.namespace === undefined ? {} : { namespace: found.namespace }),
      ...rest,
      connection,
      taskQueue,
      plugins: [...(found === undefined ? [] : [closing(connection)]), ...(rest.plugins ?? []), plugin],
    });
  } catch (error) {
    if (rest.connection === undefined) await connection.close();
    throw error;
  }
}
