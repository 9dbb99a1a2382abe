import type { Step } from '../story.ts';
import { allBut, open } from './opening.ts';
import type { FaultPoint } from './point.ts';

const QUICK: readonly Step[] = ['dispatched', 'landed', 'background-told', 'caller-ended'];

/** The worker loses Temporal past its heartbeat, another one takes over, and the connection comes back. */
export const serverWire: FaultPoint = {
  name: 'server-wire',
  about:
    'The connection between worker and Temporal is cut, another worker takes over, and the connection comes back.',
  steps: QUICK,
  soakSteps: allBut(QUICK),
  oneTurn: true,
  inject: async (stage) => {
    const wire = await stage.wire(stage.lane.server.address);
    const { step } = stage.story;
    const worker = await open(stage, { connection: wire.connection });
    const at = Date.now();
    wire.cut();
    // Past its last fence it is held until others have its calls: nothing but its own lease stops it then.
    const late = step === 'gap';
    if (!late) stage.letGo(worker);
    await wire.refusals();
    stage.strike(`${wire.broken} connections broken, ${wire.refused} refused`, at);
    await stage.startWorker();
    if (step === 'between-turns') stage.more();
    return async () => {
      if (late) stage.letGo(worker);
      wire.mend();
      // Its calls end before it does.
      await worker.stop();
    };
  },
};
