import { ROLLING, type Step } from '../story.ts';
import { allBut, open } from './opening.ts';
import { type FaultPoint, kill } from './point.ts';

const QUICK: readonly Step[] = ['model-asked', 'landed', 'between-turns'];

/** The worker is replaced by one with other instructions, tools and schemas. */
export const deploy: FaultPoint = {
  name: 'deploy',
  about: 'The worker is killed, and one with changed instructions, tools and schemas starts.',
  anyService: true,
  steps: QUICK,
  soakSteps: allBut(QUICK),
  inject: async (stage) => {
    const { step } = stage.story;
    const worker = await open(stage);
    const digests = new Map<string, string | null>();
    await stage.until(({ manifestDigest }, { task }) => {
      digests.set(task.session, manifestDigest);
      return manifestDigest !== null;
    });
    const at = Date.now();
    const dead = await kill(worker, 'all');
    // A run may end after a session's last reply.
    if (step === 'between-turns' || ROLLING.includes(step)) stage.more();
    await stage.startWorker({ env: { LAB_DEPLOY: '2' } });
    // Every session takes the new definition with its next model call. Sessions that need a person do so after the
    // answer.
    await stage.until(({ manifestDigest }, { task }) => manifestDigest !== digests.get(task.session), {
      helped: true,
    });
    stage.strike(`${dead}, every session has another manifest than before`, at);
  },
};
