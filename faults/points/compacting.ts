import { type FaultPoint, kill } from './point.ts';

const BEFORE = 'before compact';
const AFTER = 'after compact';

/** SIGKILL, a lost reply and a freeze while the older messages of a session are summarized. */
export const compacting: FaultPoint = {
  name: 'compacting',
  about:
    'The older messages are summarized. The worker is killed (SIGKILL) before it asks the model, the next one is stopped (SIGSTOP) when the summary has come and is not recorded, and the connection breaks in the summary of the third.',
  anyService: true,
  overtakes: true,
  steps: ['model-answered'],
  inject: async (stage) => {
    const first = await stage.startWorker({ breakAt: [BEFORE] });
    await stage.begin({ compacts: true });
    for (const _ of stage.actors) await first.reached(BEFORE);
    const at = Date.now();
    const killed = await kill(first, 'all');
    const second = await stage.startWorker({ breakAt: [AFTER] });
    for (const _ of stage.actors) await second.reached(AFTER);
    const frozen = second.freeze();
    await stage.startWorker();
    stage.strike(`${killed} before, ${frozen.join(', ')} stopped after a summary`, at);
    return async () => {
      for (const { session } of stage.actors) {
        const { summarized } = await session.snapshot();
        if (summarized === undefined) throw new Error(`${session.id} was not compacted`);
      }
      second.release(AFTER);
      await second.wakeAndStop();
    };
  },
};
