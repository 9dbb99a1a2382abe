/** What a worker depends on that the SDK does not promise. See `temporal/sdk-internals.ts`. */
import { Worker } from '@temporalio/worker';
import type { Workflow, WorkflowCreator } from '@temporalio/worker/lib/workflow/interface.js';
import { isOwnBundle } from './workflow-bundle.ts';

/**
 * The SDK stops workflow code after five seconds by the wall clock. On a busy machine that has ended a whole worker
 * process, and a replay of a long session may take that long.
 * - Test: `test/session/time-limit.test.ts`.
 * - When the SDK drops the option: it is ignored, and that test fails.
 */
export const SANDBOX_TIME_LIMIT = { isolateExecutionTimeout: '1 minute' } as const;

/**
 * A worker without that limit where it runs this package's own bundle, which has no endless loop. For the limit Node
 * starts a thread at each call into the sandbox and waits for its end.
 * - Figure: a replay of 78 events takes 36 ms without the limit and 65 ms with it, and 25 against 33 ms of processor
 *   time. So a successor takes a long session over in about half the time.
 * - Test: `test/session/time-limit.test.ts`.
 * - When the SDK renames the method: TypeScript refuses the `override`. When it no longer takes `undefined`: no worker
 *   starts, in any test.
 */
export class UntimedWorker extends Worker {
  protected static override async createWorkflowCreator(
    ...[bundle, options, logger]: Parameters<typeof Worker.createWorkflowCreator>
  ): ReturnType<typeof Worker.createWorkflowCreator> {
    const given = options.workflowBundle;
    const own = given && 'codePath' in given && isOwnBundle(given.codePath);
    // The option's type takes only a number, and `undefined` means no limit.
    const untimed = { ...options, isolateExecutionTimeoutMs: undefined as unknown as number };
    const creator = await Worker.createWorkflowCreator(bundle, own ? untimed : options, logger);
    return own ? new QuietReplays(creator) : creator;
  }
}

/**
 * After each workflow task, the SDK asks the thread of the sandbox for calls of sinks, also during a replay, when our
 * own workflows make none. The first task after the replay delivers what there is.
 * - Figure: the takeover of a session with 49 turns takes a fifth less processor time, by a new worker 293 instead of
 *   363 ms.
 * - Test: `test/session/quiet-replay.test.ts`.
 * - When the SDK renames a method: TypeScript refuses it. When it asks in another way: that test fails.
 */
class QuietReplays implements WorkflowCreator {
  readonly #creator: WorkflowCreator;

  constructor(creator: WorkflowCreator) {
    this.#creator = creator;
  }

  async createWorkflow(...options: Parameters<WorkflowCreator['createWorkflow']>): Promise<Workflow> {
    const workflow = await this.#creator.createWorkflow(...options);
    let replaying = false;
    return {
      activate: (activation) => {
        replaying = activation.isReplaying ?? false;
        return workflow.activate(activation);
      },
      getAndResetSinkCalls: async () => (replaying ? [] : workflow.getAndResetSinkCalls()),
      dispose: () => workflow.dispose(),
    };
  }

  destroy(): Promise<void> {
    return this.#creator.destroy();
  }
}
