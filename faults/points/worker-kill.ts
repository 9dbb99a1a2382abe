import { BACKGROUND, TREE } from '../story.ts';
import { allBut, open } from './opening.ts';
import { type FaultPoint, kill } from './point.ts';

/** SIGKILL, and another worker starts in its place. */
export const workerKill: FaultPoint = {
  name: 'worker-kill',
  about: 'The worker is killed (SIGKILL) and another one starts.',
  steps: [...allBut([]), ...TREE, ...BACKGROUND],
  inject: async (stage) => {
    const { step } = stage.story;
    const worker = await open(stage);
    const at = Date.now();
    stage.strike(`${await kill(worker)}, every session was at its step: ${step}`, at);
    await stage.startWorker();
    if (step === 'between-turns') stage.more();
  },
};
