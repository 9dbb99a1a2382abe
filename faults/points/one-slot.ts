import { type FaultPoint, kill } from './point.ts';

/** SIGKILL of a worker with one activity slot, while two sessions wait for one global effect. */
export const oneSlot: FaultPoint = {
  name: 'one-slot',
  about:
    'Workers have one slot for activities, and the one that runs a global effect is killed (SIGKILL): nobody holds a slot while it waits for the effect.',
  anyService: true,
  steps: ['landed'],
  kinds: () => ['global'],
  oneTurn: true,
  inject: async (stage) => {
    const env = { LAB_SLOTS: '1' };
    const worker = await stage.startWorker({ env, holdAt: ['landed'] });
    await stage.begin();
    await stage.held(worker);
    const at = Date.now();
    stage.strike(`${await kill(worker)}, it had one slot`, at);
    await stage.startWorker({ env });
  },
};
