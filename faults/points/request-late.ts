import type { Actor } from '../stage.ts';
import { type FaultPoint, kill } from './point.ts';

/** The service has the request when its worker dies, and executes it later. */
export const requestLate: FaultPoint = {
  name: 'request-late',
  about:
    'The worker is killed with its request at the service, which accepts it after that, within the settle time.',
  steps: ['gap'],
  kinds: () => ['idempotent', 'mutate', 'blind', 'global'],
  oneTurn: true,
  inject: async (stage) => {
    const effects = stage.effects();
    await stage.lane.control.arm({ on: 'refunds', when: 'before-write', do: 'hang', times: effects });
    const worker = await stage.startWorker();
    await stage.begin({ agent: 'late' });
    await stage.lane.control.held(effects);
    const at = Date.now();
    const dead = await kill(worker);
    const early = stage.rows();
    if (early.length > 0) throw new Error(`${early.join(', ')} landed before its worker's death`);
    await stage.startWorker();
    const settling = async ({ session, task }: Actor): Promise<boolean> => {
      // An idempotent call is sent again at once.
      if (task.kind === 'idempotent') return true;
      const [call] = (await (await stage.ownerOf(session))?.calls())?.items ?? [];
      return call?.status.kind === 'settling';
    };
    await stage.until((_, actor) => settling(actor));
    const released = await stage.lane.control.release();
    if (released < effects) throw new Error(`${released} requests were late, of ${effects} effects`);
    for (const actor of stage.actors)
      if (!(await settling(actor)))
        throw new Error(`${actor.task.session} had settled before its request went on`);
    stage.strike(
      `${dead}, nothing had landed, then every call was settling and ${released} requests went on`,
      at,
    );
  },
};
