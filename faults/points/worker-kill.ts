import { type FaultPoint, kill } from './point.ts';

/** SIGKILL, and another worker starts in its place. */
export const workerKill: FaultPoint = {
  name: 'worker-kill',
  about: 'The worker is killed (SIGKILL) and another one starts.',
  steps: [
    'model-asked',
    'model-answered',
    'dispatched',
    'in-call',
    'gap',
    'landed',
    'returned',
    'between-turns',
    'approval',
    'verifying',
    'verified',
  ],
  inject: async (stage) => {
    const { step } = stage.story;
    if (step === 'between-turns' || step === 'approval') {
      const worker = await stage.startWorker();
      await stage.begin(step === 'approval' ? { mode: 'ask' } : {});
      await stage.until(({ phase }) => phase === (step === 'approval' ? 'approval' : 'idle'));
      const at = Date.now();
      stage.strike(`${await kill(worker)} while every session was ${step}`, at);
      await stage.startWorker();
      if (step === 'between-turns') stage.more();
      return;
    }
    // Recovery itself: a first worker dies after the effect, so that there is something to verify.
    const recovery = step === 'verifying' || step === 'verified';
    const worker = await stage.startWorker({ holdAt: [recovery ? 'landed' : step] });
    await stage.begin();
    await stage.held(worker, recovery ? 'landed' : step);
    if (!recovery) {
      const at = Date.now();
      stage.strike(`${await kill(worker)}, every session was held: ${step}`, at);
      await stage.startWorker();
      return;
    }
    await worker.crash();
    const second = await stage.startWorker({ holdAt: [step] });
    await stage.held(second, step, 1);
    const at = Date.now();
    stage.strike(`${await kill(second)}, every verify was held: ${step}`, at);
    await stage.startWorker();
  },
};
