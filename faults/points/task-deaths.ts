import { tsToMs } from '@temporalio/common/lib/time.js';
import { SIGNAL } from '../../src/contract/names.ts';
import { eventsOf } from '../lost.ts';
import type { Stage } from '../stage.ts';
import { MORE } from '../story.ts';
import { open } from './opening.ts';
import { type FaultPoint, kill } from './point.ts';

const DEATHS = 9;
/** How long a session may wait for the living worker, in milliseconds. */
const LONGEST_MS = 10_000;

/** SIGKILL of one worker after the other, each while it holds a workflow task. */
export const taskDeaths: FaultPoint = {
  name: 'task-deaths',
  about:
    'Nine workers in a row are killed (SIGKILL) with a workflow task open; the one that lives has it within ten seconds.',
  anyService: true,
  steps: ['between-turns'],
  kinds: () => ['mutate'],
  oneTurn: true,
  // On other servers the wait depends on their settings.
  needs: 'dev',
  inject: async (stage) => {
    await kill(await open(stage), 'all');
    // Nobody waits for an answer while workers die.
    for (const { session, acknowledged } of stage.actors) {
      const { workflow } = stage.harness.client;
      await workflow.getHandle(session.id).signal(SIGNAL.send, { id: MORE, text: `${MORE}, please` });
      acknowledged.push(MORE);
    }
    for (let death = 1; death <= DEATHS; death++) {
      const worker = await stage.startWorker({ breakAt: ['task'], env: { LAB_HOLD_TASKS: '1' } });
      await worker.reached('task');
      await kill(worker, 'all');
    }
    await stage.startWorker();
    const at = Date.now();
    stage.strike(`${DEATHS} workers are gone, each held a workflow task`, at);
    return async () => {
      for (const { session } of stage.actors) {
        const waited = (await firstTaskSince(stage, session.id, at)) - at;
        if (waited > LONGEST_MS)
          throw new Error(`${session.id} waited ${waited} ms for the worker that lives`);
      }
    };
  },
};

/** When the first workflow task after a time was completed. */
async function firstTaskSince({ harness }: Stage, workflowId: string, since: number): Promise<number> {
  for await (const event of eventsOf(harness.client, workflowId)) {
    const at = tsToMs(event.eventTime);
    if (event.workflowTaskCompletedEventAttributes && at >= since) return at;
  }
  return Number.POSITIVE_INFINITY;
}
