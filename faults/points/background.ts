import type { SessionState } from 'perdure';
import type { HarnessProcessOptions } from 'perdure/testing';
import { lastText } from '../../src/session/state.ts';
import type { Crew } from '../crew.ts';
import { polled } from '../patience.ts';
import type { Stage } from '../stage.ts';
import { CALLER_SEALING } from '../steps.ts';
import { callerBelow, type Step } from '../story.ts';
import { callers } from '../trees.ts';

/** Steps at which a worker is held on the way to another step. */
const ON_THE_WAY: { readonly [step in Step]?: readonly Step[] } = {
  'report-carried': ['report-queued'],
  'caller-ended': ['report-queued', 'background-running'],
};

/**
 * Brings every tree with a sub-agent in the background to the step of the story. The returned workers are held there.
 */
export async function openBackground(stage: Stage, options: HarnessProcessOptions): Promise<Crew> {
  const { step } = stage.story;
  const before = ON_THE_WAY[step] ?? [];
  const worker = await stage.startWorker({ ...options, holdAt: [...before, step] });
  await stage.begin({ agent: 'overseer' });
  for (const each of before) await stage.held(worker, each);
  if (step === 'report-carried') {
    await everyCaller(stage, hasReport);
    stage.release(worker, 'report-queued');
  } else if (step === 'caller-ended') {
    stage.letGo(worker, CALLER_SEALING);
    // If the caller is a task, its end cancels by itself. Here the root must be cancelled.
    if (callerBelow(stage.story) === 2) {
      await stage.until(({ phase }) => phase === 'idle');
      for (const { session } of stage.actors) await session.cancel({ by: 'lab' });
      // The sub-agent tells the one below it, too: both are held.
      await stage.held(worker);
    }
  }
  await stage.held(worker);
  if (step === 'background-running') await everyCaller(stage, (state) => lastText(state) !== '');
  if (step === 'report-queued') await everyCaller(stage, hasReport);
  return worker;
}

function everyCaller(stage: Stage, condition: (state: SessionState) => boolean): Promise<void> {
  const { step } = stage.story;
  return polled(async () => (await callers(stage)).every(condition), `a caller did not come to ${step}`);
}

function hasReport({ inbox }: SessionState): boolean {
  return inbox.some(({ report }) => report !== undefined);
}
