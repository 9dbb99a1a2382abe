import type { Step } from '../story.ts';
import { allBut, open } from './opening.ts';
import { type FaultPoint, kill } from './point.ts';

const QUICK: readonly Step[] = ['landed'];

/** Two workers share the sessions, and the one that holds the calls dies. No other worker starts. */
export const twoWorkers: FaultPoint = {
  name: 'two-workers',
  about: 'Two workers run at once, and the one that has the calls is killed.',
  steps: QUICK,
  soakSteps: allBut(QUICK),
  inject: async (stage) => {
    const { step } = stage.story;
    const first = await open(stage);
    const second = await stage.startWorker();
    const at = Date.now();
    const pids = second.pids.join(', ');
    stage.strike(
      `${await kill(first)}, worker ${pids} was there, every session was at its step: ${step}`,
      at,
    );
    if (step === 'between-turns') stage.more();
  },
};
