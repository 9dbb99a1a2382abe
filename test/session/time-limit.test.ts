/** Whose workflow code the SDK limits in time: for the limit it starts a thread at each call into the sandbox. */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { createWorker, type SessionWorkerOptions } from '../../src/index.ts';

const workflowsPath = fileURLToPath(new URL('../../src/workflows/index.ts', import.meta.url));

/** What the SDK's sandbox is created with, for a worker that polls and ends again. */
async function limitOf(options: Partial<SessionWorkerOptions>): Promise<number | undefined> {
  const { address, namespace } = inject('temporal');
  const connection = await NativeConnection.connect({ address });
  onTestFinished(() => connection.close());
  const create = vi.spyOn(Worker as unknown as { createWorkflowCreator: Create }, 'createWorkflowCreator');
  const worker = await createWorker({
    agents: [],
    connection,
    namespace,
    taskQueue: `limit-${randomUUID()}`,
    ...options,
  });
  await worker.runUntil(Promise.resolve());
  const [, sandbox] = create.mock.lastCall ?? [];
  create.mockRestore();
  if (sandbox === undefined) throw new Error('the SDK has created no sandbox');
  return sandbox.isolateExecutionTimeoutMs;
}

type Create = (bundle: unknown, options: { isolateExecutionTimeoutMs: number }, logger: unknown) => unknown;

test('a worker of sessions alone has no limit; with workflows of its own it has one', async () => {
  expect(await limitOf({})).toBeUndefined();
  expect(await limitOf({ workflowsPath })).toBe(60_000);
  // Also where they come by a plugin.
  const plugin = {
    name: 'own-workflows',
    configureWorker: (options: WorkerOptions): WorkerOptions => ({ ...options, workflowsPath }),
  };
  expect(await limitOf({ plugins: [plugin] })).toBe(60_000);
});
