import { eventsOf } from '../lost.ts';
import type { Stage } from '../stage.ts';
import { open } from './opening.ts';
import { type FaultPoint, kill } from './point.ts';

/** What a successor reports about a call in the journal of a dead worker. */
const DIED = 'the worker that had this call has died';

/** SIGKILL with a heartbeat timeout of an hour: the successor reports the calls of the dead worker. */
export const successor: FaultPoint = {
  name: 'successor',
  about:
    'The worker is killed (SIGKILL) under an agent with a heartbeat of an hour: the worker that starts in its place fails what the dead one had in flight.',
  anyService: true,
  steps: ['landed'],
  // Between turns and at an approval a worker has nothing in flight.
  soakSteps: [
    'model-asked',
    'asking',
    'reading',
    'model-answered',
    'dispatched',
    'in-call',
    'gap',
    'returned',
    'verifying',
    'verified',
  ],
  oneTurn: true,
  inject: async (stage) => {
    const { step } = stage.story;
    const worker = await open(stage, {}, 'patient');
    const at = Date.now();
    const dead = await kill(worker);
    await stage.startWorker();
    // In recovery the first worker's death is on record, too.
    const deaths = step === 'verifying' || step === 'verified' ? 2 : 1;
    await stage.until(async (_, { session }) => {
      const owner = await stage.ownerOf(session);
      const ids = new Set([session.id, owner?.id ?? session.id]);
      const told = await Promise.all([...ids].map((id) => deathsIn(stage, id)));
      return told.reduce((sum, each) => sum + each, 0) >= deaths;
    });
    stage.strike(`${dead}, every history says: ${DIED}`, at);
  },
};

/** How often a history reports a death. For a call that is retried, the start of the retry reports it. */
async function deathsIn({ harness: { client } }: Stage, workflowId: string): Promise<number> {
  let deaths = 0;
  for await (const event of eventsOf(client, workflowId)) {
    const failed = event.activityTaskFailedEventAttributes?.failure;
    const failure = failed ?? event.activityTaskStartedEventAttributes?.lastFailure;
    if (failure?.message === DIED) deaths += 1;
  }
  return deaths;
}
