import { KINDS } from '../story.ts';
import { type FaultPoint, kill } from './point.ts';

/** As many as a tool has attempts. */
const DEATHS = 3;

/** SIGKILL of one worker after the other at the same step. */
export const workersLost: FaultPoint = {
  name: 'workers-lost',
  about:
    'Three workers in a row are killed (SIGKILL) at the same step: a model call goes on without a person, and a dispatch that did not begin uses up no attempt.',
  anyService: true,
  steps: ['model-answered', 'dispatched'],
  soakSteps: ['asking'],
  // Idempotent calls and reads have the attempts that Temporal counts.
  kinds: (step) => (step === 'dispatched' ? ['mutate', 'blind', 'global'] : KINDS),
  oneTurn: true,
  inject: async (stage) => {
    const { step } = stage.story;
    let at = 0;
    const dead: string[] = [];
    for (let death = 1; death <= DEATHS; death++) {
      const worker = await stage.startWorker({ holdAt: [step] });
      // No heartbeat is missed: the next worker reports the calls that the dead one had not begun.
      if (death === 1) await stage.begin({ agent: 'patient' });
      // The next worker repeats this request first.
      await stage.held(worker, step, step === 'asking' && death > 1 ? 0 : 1);
      at ||= Date.now();
      dead.push(await kill(worker, 'all'));
    }
    stage.strike(`${dead.join(', ')}; every session was at its step each time: ${step}`, at);
    await stage.startWorker();
    return async () => {
      for (const { session, people } of stage.actors)
        if (people.length > 0) throw new Error(`${session.id} asked for a person: ${JSON.stringify(people)}`);
    };
  },
};
