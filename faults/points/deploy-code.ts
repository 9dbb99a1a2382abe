import { fileURLToPath } from 'node:url';
import { eventsOf } from '../lost.ts';
import { polled } from '../patience.ts';
import type { Stage } from '../stage.ts';
import { ROLLING, type Step } from '../story.ts';
import { allBut, open } from './opening.ts';
import { type FaultPoint, kill } from './point.ts';

const NEXT = fileURLToPath(new URL('../next-workflows.ts', import.meta.url));

/** A new run of a session may take the changed code. */
const ONE_RUN = { LAB_RUN_TURNS: '' };

const QUICK: readonly Step[] = ['landed', 'approval'];

/** The worker is replaced by a worker with different workflow code. Sessions in flight replay on it. */
export const deployCode: FaultPoint = {
  name: 'deploy-code',
  about:
    'The worker is killed, and one starts whose workflow code is changed behind a patch; sessions in flight replay their histories on it.',
  anyService: true,
  steps: QUICK,
  soakSteps: allBut([...QUICK, ...ROLLING]),
  inject: async (stage) => {
    const { step } = stage.story;
    const worker = await open(stage, { env: ONE_RUN });
    const at = Date.now();
    const dead = await kill(worker, 'all');
    if (step === 'between-turns') stage.more();
    await stage.startWorker({ env: { ...ONE_RUN, LAB_WORKFLOWS: NEXT } });
    await stage.until(async (_, { session }) => (await buildsOf(stage, session.id)).size === 2, {
      helped: true,
    });
    const fresh = await stage.harness.startSession('careful', { id: `${stage.actors[0]?.session.id}-fresh` });
    const memo = async (id: string): Promise<unknown> =>
      (await stage.harness.client.workflow.getHandle(id).describe()).memo?.['labVersion'];
    // Do not read the session's state: if the worker is busy, the client folds the history, and the fold does not know
    // the patch of the next version.
    await polled(async () => (await memo(fresh.id)) === 'next', 'the changed code did not run');
    for (const { session } of stage.actors)
      if ((await memo(session.id)) !== undefined) throw new Error(`${session.id} left its path`);
    await fresh.cancel();
    stage.strike(`${dead}; every session has tasks of two builds, a new one ran what is new`, at);
  },
};

/** The builds of the workers that have done a session's workflow tasks. */
async function buildsOf(stage: Stage, workflowId: string): Promise<Set<string>> {
  const builds = new Set<string>();
  for await (const event of eventsOf(stage.harness.client, workflowId)) {
    const task = event.workflowTaskCompletedEventAttributes;
    const build = task?.workerVersion?.buildId ?? task?.binaryChecksum;
    if (build) builds.add(build);
  }
  return builds;
}
