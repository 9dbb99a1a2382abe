import { BACKGROUND, type Step, TREE } from '../story.ts';
import { allBut, open } from './opening.ts';
import { type FaultPoint, gone } from './point.ts';

const QUICK: readonly Step[] = [
  'model-answered',
  'landed',
  'returned',
  'between-turns',
  'delegated',
  'child-told',
  'background-done',
  'report-queued',
];

/** The Temporal server is killed and starts again over its file; the worker lives. */
export const serverKill: FaultPoint = {
  name: 'server-kill',
  about:
    'The Temporal server is killed (SIGKILL) and starts again over its file, under a worker that goes on.',
  anyService: true,
  steps: QUICK,
  soakSteps: [...allBut(QUICK), ...[...TREE, ...BACKGROUND].filter((step) => !QUICK.includes(step))],
  inject: async (stage) => {
    const { step } = stage.story;
    const { server } = stage.lane;
    const worker = await open(stage);
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
