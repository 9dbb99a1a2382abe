import type { FaultPoint } from './point.ts';

/** The worker loses Temporal past its heartbeat, another one takes over, and the connection comes back. */
export const serverWire: FaultPoint = {
  name: 'server-wire',
  about:
    'The connection between worker and Temporal is cut, another worker takes over, and the connection comes back.',
  steps: ['dispatched', 'landed'],
  soakSteps: ['model-asked', 'model-answered', 'in-call', 'gap', 'returned'],
  overtakes: true,
  oneTurn: true,
  inject: async (stage) => {
    const wire = await stage.wire(stage.lane.server.address);
    const worker = await stage.startWorker({
      holdAt: [stage.story.step],
      connection: wire.connection,
      env: stage.story.step === 'gap' ? { LAB_RECKLESS: '1' } : {},
    });
    await stage.begin();
    await stage.held(worker);
    const at = Date.now();
    wire.cut();
    stage.letGo(worker);
    await wire.refusals();
    stage.strike(`${wire.broken} connections broken, ${wire.refused} refused`, at);
    await stage.startWorker();
    return async () => {
      wire.mend();
      // Its calls end before it does.
      await worker.stop();
    };
  },
};
