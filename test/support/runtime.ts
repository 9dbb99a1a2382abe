import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';
import { isOwnBundle } from '../../src/worker/workflow-bundle.ts';

/** Logs errors only. A process has one runtime and serves several test files: the first of them installs it. */
export function quietRuntime(): void {
  try {
    Runtime.install({ logger: new DefaultLogger('ERROR') });
  } catch {
    // Installed before.
  }
}

/** The internals of the SDK's workers that are shared here. */
interface WorkerInternals {
  getOrCreateBundle(options: Compiled, logger: unknown): Promise<object>;
  createWorkflowCreator(bundle: object, options: Compiled, logger: unknown): Promise<object>;
}
interface Compiled {
  readonly workflowBundle?: { readonly codePath?: string };
  readonly activities: ReadonlyMap<string, unknown>;
  readonly debugMode?: boolean;
  readonly isolateExecutionTimeoutMs?: number;
  readonly patchActivationCallback?: unknown;
  readonly workerDeploymentOptions?: unknown;
  buildId?: string;
}

/**
 * Lets the workers and replays of a process share one workflow bundle: each takes 30 ms of processor time to parse, 20
 * ms to digest as the build id of a replay, and 40 ms to load into a context. A context serves many sessions in
 * production, too.
 */
function shareBundle(): void {
  const parsed = new Map<string, Promise<object>>();
  const loaded = new Map<object, Promise<object> | undefined>();
  const worker = Worker as unknown as WorkerInternals;
  const { getOrCreateBundle: parse, createWorkflowCreator: load } = worker;
  worker.getOrCreateBundle = async function (this: WorkerInternals, options, logger) {
    const path = options.workflowBundle?.codePath ?? '';
    if (!isOwnBundle(path)) return parse.call(this, options, logger);
    if (options.workerDeploymentOptions === undefined) options.buildId ??= 'test';
    const parsing = parsed.get(path) ?? parse.call(this, options, logger);
    parsed.set(path, parsing);
    const bundle = await parsing;
    if (!loaded.has(bundle)) loaded.set(bundle, undefined);
    return bundle;
  };
  worker.createWorkflowCreator = async function (this: WorkerInternals, bundle, options, logger) {
    const { debugMode, patchActivationCallback, isolateExecutionTimeoutMs, activities } = options;
    if (!loaded.has(bundle) || debugMode !== true || patchActivationCallback !== undefined)
      return load.call(this, bundle, options, logger);
    const creator = loaded.get(bundle) ?? load.call(this, bundle, options, logger);
    loaded.set(bundle, creator);
    return Object.create(await creator, {
      isolateExecutionTimeoutMs: { value: isolateExecutionTimeoutMs },
      registeredActivityNames: { value: new Set(activities.keys()) },
      destroy: { value: async (): Promise<void> => undefined },
    }) as object;
  };
}
shareBundle();

/** A hook that the SDK sets in threads that run workflow code. Tests leave it out. */
interface PromiseHooks {
  setPromiseHook(): void;
}

/**
 * The SDK traces each promise of a thread that runs workflow code, for the query `__stack_trace`. Here that is the
 * thread of all tests, and takes half of its processor time. Workers with `debugMode: false` have a thread with the
 * hook.
 */
(globalHandlers as unknown as PromiseHooks).setPromiseHook = () => undefined;
