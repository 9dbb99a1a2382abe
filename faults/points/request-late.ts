import { type FaultPoint, kill } from './point.ts';

/** The request is with the service when its worker dies, and lands after that. */
export const requestLate: FaultPoint = {
  name: 'request-late',
  about:
    'The worker is killed with its request at the service, which accepts it after that, within the settle time.',
  steps: ['gap'],
  kinds: () => ['write', 'mutate', 'blind', 'global'],
  oneTurn: true,
  inject: async (stage) => {
    const effects = stage.effects();
    await stage.lane.control.arm({ on: 'refunds', when: 'before-write', do: 'hang', times: effects });
    const worker = await stage.startWorker();
    await stage.begin();
    await stage.lane.control.held(effects);
    const at = Date.now();
    const dead = await kill(worker);
    const before = stage.rows();
    if (before.length > 0) throw new Error(`${before.join(', ')} landed before its worker's death`);
    const released = await stage.lane.control.release();
    if (released < effects) throw new Error(`${released} requests were late, of ${effects} effects`);
    stage.strike(`${dead}, nothing had landed, then ${released} requests went on`, at);
    await stage.startWorker();
  },
};
