import { execFileSync } from 'node:child_process';
import { lostActivities } from '../lost.ts';
import type { Stage } from '../stage.ts';
import { BACKGROUND, type Step, TREE } from '../story.ts';
import { sessionsBelow } from '../trees.ts';
import { allBut, open } from './opening.ts';
import { type FaultPoint, MISSED } from './point.ts';

const QUICK: readonly Step[] = [
  'model-asked',
  'gap',
  'returned',
  'delegated',
  'child-done',
  'background-told',
];

/** Steps at which the worker has a workflow task or nothing. */
const OF_TASKS: readonly Step[] = [
  'between-turns',
  'approval',
  'child-asks',
  'child-decided',
  'report-carried',
  'rolling-over',
];

const REPORTING: readonly Step[] = [
  'telling',
  'child-done',
  'child-told',
  'background-done',
  'background-told',
];
const STORING: readonly Step[] = ['sealing', 'sealed', 'parent-sealing', 'report-queued'];

/** SIGSTOP for longer than the heartbeat timeout. Another worker takes over; SIGCONT follows when it has finished. */
export const workerFreeze: FaultPoint = {
  name: 'worker-freeze',
  about:
    'The worker is stopped (SIGSTOP) past its heartbeat, another one takes over, and the first one wakes.',
  steps: QUICK,
  soakSteps: [...allBut(QUICK), ...[...TREE, ...BACKGROUND].filter((step) => !QUICK.includes(step))],
  overtakes: true,
  oneTurn: true,
  inject: async (stage) => {
    const { step } = stage.story;
    const worker = await open(stage, step === 'gap' ? { env: { LAB_RECKLESS: '1' } } : {});
    const at = Date.now();
    const frozen = worker.freeze();
    const states = (): string => frozen.map((pid) => `worker ${pid} is ${stateOf(pid)}`).join(', ');
    // The worker is released, and continues at this line as soon as it wakes.
    stage.letGo(worker);
    await stage.startWorker();
    stage.strike(`${states()}, every session was at its step: ${step}`, at);
    if (step === 'between-turns') stage.more();
    return async () => {
      if (!frozen.every((pid) => stateOf(pid).startsWith('T'))) throw new Error(`not stopped: ${states()}`);
      await overtaken(stage, at);
      // The worker finishes its calls before it ends.
      await worker.wakeAndStop();
    };
  },
};

/** @throws if the history of a session, or of its effect, has no lost call since then, although the step has a call. */
async function overtaken(stage: Stage, since: number): Promise<void> {
  const { step } = stage.story;
  // At these steps a workflow task is lost, not an activity.
  if (OF_TASKS.includes(step)) return;
  // Reads share the activity of the model call that follows them.
  const types =
    step === 'model-asked' || step === 'asking' || step === 'model-answered' || step === 'fetching'
      ? ['model']
      : step === 'verifying' || step === 'verified'
        ? ['verify']
        : step === 'attached' || step === 'delegated' || step === 'background-started'
          ? ['attach']
          : REPORTING.includes(step)
            ? ['report']
            : STORING.includes(step)
              ? ['storePast']
              : step === 'caller-ended'
                ? ['steer']
                : ['tool', 'model'];
  for (const { session } of stage.actors) {
    const below = [...TREE, ...BACKGROUND].includes(step) ? await sessionsBelow(stage, session) : [];
    const ids = new Set([
      session.id,
      (await stage.ownerOf(session))?.id ?? session.id,
      ...below.map((each) => each.session.id),
    ]);
    const lost = await Promise.all([...ids].map((id) => lostActivities(stage.harness.client, id)));
    if (!lost.flat().some(({ type, at }) => types.includes(type) && at >= since))
      throw new Error(`${MISSED}: ${session.id}: no heartbeat was missed by its call at ${step}`);
  }
}

/** The state of a process as `ps` has it: `T` is stopped. */
function stateOf(pid: number): string {
  return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).trim();
}
