import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';
import { isOwnBundle } from '../../src/worker/workflow-bundle.ts';

/** Logs errors only. A process has one runtime, and serves several test files: who comes first installs it. */
export function quietRuntime(): void {
  try {
    Runtime.install({ logger: new DefaultLogger('ERROR') });
  } catch {
    // Installed before.
  }
}

/** A worker of the SDK, as far as it reads the code of its workflows. */
interface BundleReader {
  getOrCreateBundle(options: { workflowBundle?: { codePath?: string } }, logger: unknown): Promise<unknown>;
}

/** Lets the workers and replays of a process share one parsed workflow bundle: each takes 30 ms of processor time to parse. */
function shareBundle(): void {
  const parsed = new Map<string, Promise<unknown>>();
  const worker = Worker as unknown as BundleReader;
  const parse = worker.getOrCreateBundle;
  worker.getOrCreateBundle = function (this: BundleReader, options, logger) {
    const path = options.workflowBundle?.codePath ?? '';
    if (!isOwnBundle(path)) return parse.call(this, options, logger);
    const bundle = parsed.get(path) ?? parse.call(this, options, logger);
    parsed.set(path, bundle);
    return bundle;
  };
}
shareBundle();

/** The hooks that the SDK sets in a thread that runs workflow code, as far as tests leave them out. */
interface PromiseHooks {
  setPromiseHook(): void;
}

/**
 * The SDK traces each promise of a thread that runs workflow code, for the query `__stack_trace`. Here that is the thread of
 * all tests, and takes half of its processor time. Workers with `debugMode: false` have a thread with the hook.
 */
(globalHandlers as unknown as PromiseHooks).setPromiseHook = () => undefined;
