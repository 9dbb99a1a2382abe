import type { Step } from '../story.ts';
import { allBut, open } from './opening.ts';
import type { FaultPoint } from './point.ts';

const QUICK: readonly Step[] = ['dispatched', 'landed', 'background-told', 'caller-ended'];

/**
 * The worker loses Temporal for longer than its heartbeat timeout, another worker takes over, and the connection comes
 * back.
 */
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
    // After its last fence, the worker is held until others have its calls: only its own lease can stop it then.
    const late = step === 'gap';
    if (!late) stage.letGo(worker);
    await wire.refusals();
    stage.strike(`${wire.broken} connections broken, ${wire.refused} refused`, at);
    await stage.startWorker();
    if (step === 'between-turns') stage.more();
    return async () => {
      if (late) stage.letGo(worker);
      wire.mend();
      // The worker finishes its calls before it ends.
      await worker.stop();
    };
  },
};
