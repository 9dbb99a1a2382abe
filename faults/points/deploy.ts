import { type FaultPoint, kill } from './point.ts';

/** The worker is replaced by one with other instructions, tools and schemas. */
export const deploy: FaultPoint = {
  name: 'deploy',
  about: 'The worker is killed, and one with changed instructions and tools starts.',
  anyService: true,
  steps: ['model-asked', 'landed', 'between-turns'],
  soakSteps: ['model-answered', 'dispatched', 'in-call', 'returned', 'approval'],
  inject: async (stage) => {
    const { step } = stage.story;
    const resting = step === 'between-turns' || step === 'approval';
    const worker = await stage.startWorker({ holdAt: resting ? [] : [step] });
    await stage.begin(step === 'approval' ? { mode: 'ask' } : {});
    if (resting) await stage.until(({ phase }) => phase === (step === 'approval' ? 'approval' : 'idle'));
    else await stage.held(worker);
    const digests = new Map<string, string | null>();
    await stage.until(({ manifestDigest }, { task }) => {
      digests.set(task.session, manifestDigest);
      return manifestDigest !== null;
    });
    const at = Date.now();
    const dead = await kill(worker, 'all');
    if (step === 'between-turns') stage.more();
    await stage.startWorker({ env: { LAB_DEPLOY: '2' } });
    // Every session takes the new definition with its next model call, those that need a person after their word.
    await stage.until(({ manifestDigest }, { task }) => manifestDigest !== digests.get(task.session), {
      helped: true,
    });
    stage.strike(`${dead}, every session has another manifest than before`, at);
  },
};
