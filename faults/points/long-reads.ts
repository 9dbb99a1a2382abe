import type { Stage } from '../stage.ts';
import { type FaultPoint, kill } from './point.ts';

/** SIGKILL while reads run long: reads whose results are in heartbeats do not run again. */
export const longReads: FaultPoint = {
  name: 'long-reads',
  about:
    'The worker is killed (SIGKILL) while one of two reads runs long, or between both and the reply, and its heartbeats hold what was read: it is not read again, and only a request that may have been sent is charged.',
  anyService: true,
  steps: ['reading', 'asking'],
  kinds: () => ['read'],
  oneTurn: true,
  inject: async (stage) => {
    const { step } = stage.story;
    const worker = await stage.startWorker({ holdAt: ['reading', 'asking'] });
    await stage.begin();
    await stage.held(worker, 'asking', 0);
    stage.release(worker, 'asking');
    await stage.held(worker, 'reading');
    await heartbeats(stage, 1);
    if (step === 'asking') {
      stage.release(worker, 'reading');
      await stage.held(worker, 'asking', 0);
      await heartbeats(stage, 2);
    }
    const at = Date.now();
    stage.strike(`${await kill(worker)}, its heartbeats held ${step === 'asking' ? 2 : 1} of 2 reads`, at);
    await stage.startWorker();
    return () => checkReads(stage);
  },
};

/** Resolves when the heartbeats of every session hold the results of so many reads. */
async function heartbeats(stage: Stage, reads: number): Promise<void> {
  await stage.until(async (_, { session }) => {
    const { raw } = await stage.harness.client.workflow.getHandle(session.id).describe();
    const data = raw.pendingActivities?.[0]?.heartbeatDetails?.payloads?.[0]?.data;
    const details = JSON.parse(Buffer.from(data ?? []).toString() || '{}') as {
      stage?: string;
      reads?: unknown[];
    };
    return details.reads?.length === reads && (reads > 1 || details.stage === 'reading');
  });
}

async function checkReads({ actors, story }: Stage): Promise<void> {
  for (const { session } of actors) {
    const { items } = await session.calls();
    const [look, glance] = items.slice(0, 2).map(({ dispatches }) => dispatches);
    const again = story.step === 'asking' ? [look, glance] : [look];
    if (again.some((dispatches) => dispatches?.length !== 1 || dispatches[0]?.attempts !== undefined))
      throw new Error(`${session.id} has read again what was there: ${JSON.stringify(items)}`);
    const { lostReplies } = (await session.budget()).spent;
    // A successor whose own heartbeats are late cannot know more than that.
    if (lostReplies > 1) throw new Error(`${session.id} was charged for ${lostReplies} lost replies`);
  }
}
