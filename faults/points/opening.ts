import type { HarnessProcessOptions } from 'perdure/testing';
import type { Crew } from '../crew.ts';
import type { Stage } from '../stage.ts';
import { BACKGROUND, STEPS, type Step, TREE } from '../story.ts';
import { openBackground } from './background.ts';

/** All steps of a single session except those that a point has already. Soaks use them, too. */
export function allBut(steps: readonly Step[]): Step[] {
  return (Object.keys(STEPS) as Step[]).filter((step) => ![...steps, ...TREE, ...BACKGROUND].includes(step));
}

/**
 * Brings every session to the step of the story. The returned workers are held there, or have nothing to do if the
 * sessions are at rest.
 *
 * @param options - how these workers start.
 */
export async function open(
  stage: Stage,
  options: HarnessProcessOptions = {},
  agent: 'careful' | 'patient' = 'careful',
): Promise<Crew> {
  const { step } = stage.story;
  if (step === 'verifying' || step === 'verified') {
    // Recovery itself: a first worker dies after the effect, so that there is something to verify.
    const first = await stage.startWorker({ ...(options.env && { env: options.env }), holdAt: ['landed'] });
    await stage.begin({ agent });
    await stage.held(first, 'landed');
    await first.crash();
    const worker = await stage.startWorker({ ...options, holdAt: [step] });
    await stage.held(worker, step, 1);
    return worker;
  }
  if (step === 'fetching') {
    // The worker that asked the model has the messages in memory. Another worker must fetch them.
    const first = await stage.startWorker();
    await stage.begin({ agent });
    await stage.until(({ phase, queued }) => phase === 'idle' && queued === 0, { helped: true });
    await first.crash();
    const worker = await stage.startWorker({ ...options, holdAt: [step] });
    stage.more();
    await stage.held(worker, step, 1);
    return worker;
  }
  if (step === 'child-asks' || step === 'child-decided') {
    const worker = await stage.startWorker({ ...options, holdAt: [step] });
    await stage.begin({ agent: 'director', mode: 'ask' });
    await stage.until(async (_, { session }) =>
      (await session.tree()).open.some(({ call }) => call !== null),
    );
    if (step === 'child-asks') return worker;
    stage.approveBelow();
    await stage.held(worker);
    return worker;
  }
  if (BACKGROUND.includes(step)) return openBackground(stage, options);
  const phase = { 'between-turns': 'idle', approval: 'approval' }[step as string];
  const worker = await stage.startWorker({ ...options, holdAt: phase === undefined ? [step] : [] });
  await stage.begin({
    agent: TREE.includes(step) ? 'director' : agent,
    mode: step === 'approval' ? 'ask' : 'plain',
  });
  if (phase === undefined) await stage.held(worker);
  else await stage.until((view) => view.phase === phase);
  return worker;
}
