import { type FaultPoint, kill } from './point.ts';

/** Two workers share the sessions, and the one that has the calls dies; nobody starts in its place. */
export const twoWorkers: FaultPoint = {
  name: 'two-workers',
  about: 'Two workers run at once, and the one that has the calls is killed.',
  steps: ['landed'],
  soakSteps: ['dispatched', 'returned'],
  inject: async (stage) => {
    const first = await stage.startWorker({ holdAt: [stage.story.step] });
    await stage.begin();
    await stage.held(first);
    const second = await stage.startWorker();
    const at = Date.now();
    stage.strike(
      `${await kill(first)}, worker ${second.pids.join(', ')} was there, every session was held`,
      at,
    );
  },
};
