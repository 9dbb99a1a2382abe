import { eventsOf } from '../lost.ts';
import type { Stage } from '../stage.ts';
import { open } from './opening.ts';
import { type FaultPoint, kill } from './point.ts';

/** What a successor says of a call that it has found in the journal of a dead worker. */
const DIED = 'the worker that had this call has died';

/** SIGKILL where no heartbeat would be missed for an hour: the one that starts in its place says what it had. */
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

/** How often a history says it: of a call that is tried again, where that starts. */
async function deathsIn({ harness: { client } }: Stage, workflowId: string): Promise<number> {
  let deaths = 0;
  for await (const event of eventsOf(client, workflowId)) {
    const failed = event.activityTaskFailedEventAttributes?.failure;
    const failure = failed ?? event.activityTaskStartedEventAttributes?.lastFailure;
    if (failure?.message === DIED) deaths += 1;
  }
  return deaths;
}
