import { type FaultPoint, gone } from './point.ts';

/** The Temporal server is killed and starts again over its file; the worker lives. */
export const serverKill: FaultPoint = {
  name: 'server-kill',
  about:
    'The Temporal server is killed (SIGKILL) and starts again over its file, under a worker that goes on.',
  anyService: true,
  steps: ['model-answered', 'landed', 'returned', 'between-turns'],
  soakSteps: ['model-asked', 'dispatched', 'in-call', 'gap', 'approval'],
  inject: async (stage) => {
    const { step } = stage.story;
    const { server } = stage.lane;
    const resting = step === 'between-turns' || step === 'approval';
    const worker = await stage.startWorker({ holdAt: resting ? [] : [step] });
    await stage.begin(step === 'approval' ? { mode: 'ask' } : {});
    if (resting) await stage.until(({ phase }) => phase === (step === 'approval' ? 'approval' : 'idle'));
    else await stage.held(worker);
    const { pid } = server;
    const at = Date.now();
    await server.kill();
    if (!gone(pid)) throw new Error(`server ${pid} is still there`);
    stage.letGo(worker);
    await server.restart();
    stage.strike(`server ${pid} is gone, ${server.pid} serves its file`, at);
    if (step === 'between-turns') stage.more();
  },
};
