import { type FaultPoint, kill } from './point.ts';

const env = { LAB_RUN_TURNS: '1' };
const BEFORE = 'before storePast';
const AFTER = 'after storePast';

/** SIGKILL while a session continues in a new run of its workflow. */
export const newRun: FaultPoint = {
  name: 'new-run',
  about:
    'Sessions go on in a new run after each turn. The worker is killed (SIGKILL) before it stores what leaves the run, and the next one when this is stored and not recorded.',
  anyService: true,
  steps: ['between-turns'],
  inject: async (stage) => {
    const first = await stage.startWorker({ env, breakAt: [BEFORE] });
    await stage.begin();
    for (const _ of stage.actors) await first.reached(BEFORE);
    const at = Date.now();
    const before = await kill(first, 'all');
    const second = await stage.startWorker({ env, breakAt: [AFTER] });
    for (const _ of stage.actors) await second.reached(AFTER);
    const after = await kill(second, 'all');
    stage.strike(`${before} before the past was stored, ${after} before that was recorded`, at);
    await stage.startWorker({ env });
    stage.more();
    return async () => {
      for (const { session } of stage.actors) {
        const { past, transcript } = await session.snapshot();
        if (past === undefined || transcript.length > past.messages)
          throw new Error(`${session.id} has stayed in its run`);
      }
    };
  },
};
