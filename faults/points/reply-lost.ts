import type { FaultPoint } from './point.ts';

/** The effect lands, but the reply of the service is lost in a broken connection. */
export const replyLost: FaultPoint = {
  name: 'reply-lost',
  about: 'The connection between worker and service breaks after the effect: the reply is lost.',
  steps: ['landed', 'background-running'],
  kinds: () => ['idempotent', 'mutate', 'blind', 'global'],
  oneTurn: true,
  inject: async (stage) => {
    const wire = await stage.wire(stage.lane.payments);
    const effects = stage.effects();
    await stage.lane.control.arm({ on: 'refunds', when: 'after-write', do: 'hang', times: effects });
    await stage.startWorker({ env: { PAYMENTS_URL: `http://${wire.address}` } });
    await stage.begin(stage.story.step === 'landed' ? {} : { agent: 'overseer' });
    const held = await stage.lane.control.held(effects);
    const rows = held.map(({ row }) => row);
    if (rows.includes(null)) throw new Error('an effect was held that had not landed');
    const at = Date.now();
    wire.cut();
    if (wire.broken < effects) throw new Error(`${wire.broken} connections broken, of ${effects} effects`);
    stage.strike(`${wire.broken} connections broken with ${rows.join(', ')} in the ledger`, at);
    wire.mend();
    await stage.lane.control.release();
  },
};
