/** A worker and savers for threads that are no session, on the shared server. */
import { createHash } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, inject } from 'vitest';
import { createWorker, TemporalSaver } from '../../../src/index.ts';
import { quietRuntime } from '../../support/runtime.ts';

/** What the tests of a file share. */
export interface Threads {
  client: Client;
  taskQueue: string;
  /** A saver that knows nothing yet, as in another process. */
  newSaver(): TemporalSaver;
  /** A thread id that no other test has. */
  id(): string;
  startWorker(queue?: string): Promise<void>;
  /** The workflows that the server holds of a thread's large states and steps: one a part. */
  contents(thread: string): Promise<string[]>;
}

/** Connects before the file's tests and disconnects after them. */
export function useThreads(): Threads {
  quietRuntime();
  const taskQueue = `threads-${process.pid}-${Date.now()}`;
  let ids = 0;
  let native: NativeConnection;
  let connection: Connection;
  const stops: (() => Promise<void>)[] = [];
  const threads: Threads = {
    client: null as unknown as Client,
    taskQueue,
    newSaver: () => new TemporalSaver(threads.client, { taskQueue }),
    id: () => `${taskQueue}-${ids++}`,
    contents: async (thread) => {
      const found: string[] = [];
      const digest = createHash('sha256').update(thread).digest('hex').slice(0, 32);
      const query = `WorkflowId STARTS_WITH 'perdure-content/${digest}/'`;
      for await (const { workflowId } of threads.client.workflow.list({ query })) found.push(workflowId);
      return found;
    },
    startWorker: async (queue = taskQueue) => {
      const { namespace } = inject('temporal');
      const worker = await createWorker({ agents: [], connection: native, namespace, taskQueue: queue });
      const run = worker.run();
      stops.push(async () => {
        worker.shutdown();
        await run;
      });
    },
  };
  beforeAll(async () => {
    const { address, namespace } = inject('temporal');
    connection = await Connection.connect({ address });
    native = await NativeConnection.connect({ address });
    threads.client = new Client({ connection, namespace });
  });
  afterAll(async () => {
    for (const stop of stops) await stop();
    await native.close();
    await connection.close();
  });
  return threads;
}
