import { execFileSync } from 'node:child_process';
import type { FaultPoint } from './point.ts';

/** SIGSTOP past the heartbeat; another worker takes over; SIGCONT when that has finished. */
export const workerFreeze: FaultPoint = {
  name: 'worker-freeze',
  about:
    'The worker is stopped (SIGSTOP) past its heartbeat, another one takes over, and the first one wakes.',
  steps: ['model-asked', 'gap', 'returned'],
  soakSteps: ['model-answered', 'dispatched', 'in-call', 'landed'],
  overtakes: true,
  oneTurn: true,
  inject: async (stage) => {
    const worker = await stage.startWorker({
      holdAt: [stage.story.step],
      env: stage.story.step === 'gap' ? { LAB_RECKLESS: '1' } : {},
    });
    await stage.begin();
    await stage.held(worker);
    const at = Date.now();
    const frozen = worker.freeze();
    const states = (): string => frozen.map((pid) => `worker ${pid} is ${stateOf(pid)}`).join(', ');
    // It is released, and will go on at this line as soon as it wakes.
    stage.letGo(worker);
    await stage.startWorker();
    stage.strike(`${states()}, every session was held: ${stage.story.step}`, at);
    return async () => {
      if (!frozen.every((pid) => stateOf(pid).startsWith('T'))) throw new Error(`not stopped: ${states()}`);
      // Its calls end before it does.
      await worker.wakeAndStop();
    };
  },
};

/** The state of a process as `ps` has it: `T` is stopped. */
function stateOf(pid: number): string {
  return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).trim();
}
