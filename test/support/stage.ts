/**
 * A stage for session tests: a scripted model, a worker and a client on the shared server, on a task queue of their
 * own.
 */
import { createHash } from 'node:crypto';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, type Worker } from '@temporalio/worker';
import { expect, inject, onTestFinished } from 'vitest';
import {
  createWorker,
  type DefinedAgent,
  type Phase,
  type Session,
  Sessions,
  type SessionView,
  type SessionWorkerOptions,
} from '../../src/index.ts';
import { type Script, type ScriptedModel, startScriptedModel } from '../../src/testing/index.ts';
import { polled } from './polled.ts';
import { quietRuntime } from './runtime.ts';

quietRuntime();

/** What a test works with. */
export interface Stage {
  readonly model: ScriptedModel;
  /** Language models of the scripted endpoint, by any name. */
  readonly provider: ReturnType<typeof createOpenAICompatible>;
  readonly client: Client;
  readonly sessions: Sessions;
  readonly taskQueue: string;
  /** An id that no other test has. */
  id(name?: string): string;
  startWorker(
    agents: readonly DefinedAgent[],
    options?: Partial<SessionWorkerOptions>,
  ): Promise<RunningWorker>;
}

/** A worker in this process. Worker death is tested with processes. */
export interface RunningWorker {
  readonly worker: Worker;
  stop(): Promise<void>;
}

/** Opens a stage for the running test, and closes it when the test has finished. */
export async function openStage(script: Script): Promise<Stage> {
  const { address, namespace } = inject('temporal');
  const { currentTestName = 'test', testPath = '' } = expect.getState();
  const taskQueue = `t-${createHash('sha256').update(`${testPath}:${currentTestName}:${process.pid}:${Math.random()}`).digest('hex').slice(0, 12)}`;
  const model = await startScriptedModel({ script });
  onTestFinished(() => model.stop());
  const connection = await Connection.connect({ address });
  onTestFinished(() => connection.close());
  const client = new Client({ connection, namespace });
  let native: NativeConnection | undefined;
  let ids = 0;
  return {
    model,
    provider: createOpenAICompatible({ name: 'scripted', baseURL: model.url, includeUsage: true }),
    client,
    sessions: new Sessions(client, { taskQueue }),
    taskQueue,
    id: (name = 'session') => `${name}-${taskQueue}-${ids++}`,
    startWorker: async (agents, options = {}) => {
      native ??= await connectNative(address);
      // Workflow code in this thread: a thread of its own costs each worker 0.25 s of processor time. Worker processes
      // have one.
      const own = { agents, connection: native, namespace, taskQueue, debugMode: true };
      const worker = await createWorker({ ...own, ...options });
      const run = worker.run();
      const stop = async (): Promise<void> => {
        if (worker.getState() === 'RUNNING') worker.shutdown();
        await run;
      };
      onTestFinished(stop);
      return { worker, stop };
    },
  };
}

async function connectNative(address: string): Promise<NativeConnection> {
  const native = await NativeConnection.connect({ address });
  onTestFinished(() => native.close());
  return native;
}

/** Waits until a session's view fulfils a condition. On a time-out, the error shows the last view. */
export async function until(
  session: Session,
  condition: (view: SessionView) => boolean,
): Promise<SessionView> {
  let view: SessionView | undefined;
  await polled(
    async () => {
      view = await session.state();
      return condition(view);
    },
    () => JSON.stringify(view, null, 1),
  );
  return view as SessionView;
}

/** Waits until a session is in a phase. */
export function untilPhase(session: Session, ...phases: Phase[]): Promise<SessionView> {
  return until(session, ({ phase }) => phases.includes(phase));
}
