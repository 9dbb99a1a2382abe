import { existsSync, readFileSync } from 'node:fs';
import type { ClockStep } from '../clock.ts';
import type { FaultPoint } from './point.ts';

const LEAST_MS = 3_000_000;

/** The wall clock of the worker jumps in every call. */
export const clockStep: FaultPoint = {
  name: 'clock-step',
  about:
    'In each call the wall clock of the worker process (its `Date`, not the clock of the machine) jumps: an hour forward, then two hours back, and so on.',
  anyService: true,
  // Only the tool steps the clock, so there are no other steps.
  steps: ['gap', 'landed'],
  soakSteps: ['in-call'],
  inject: async (stage) => {
    const file = stage.lane.file(`clock-${stage.story.seed}-${Date.now()}.jsonl`);
    await stage.startWorker({ env: { LAB_CLOCK_STEP: stage.story.step, LAB_CLOCK_FILE: file } });
    await stage.begin();
    const steps = (): ClockStep[] =>
      existsSync(file)
        ? readFileSync(file, 'utf8')
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line) as ClockStep)
        : [];
    await stage.until((_, { task }) => steps().some(({ tag }) => tag.startsWith(`${task.tag}#`)), {
      helped: true,
    });
    const jumpedAt = stage.actors.map(({ task }): [string, number] => [
      task.session,
      steps().find(({ tag }) => tag.startsWith(`${task.tag}#`))?.at ?? Number.NaN,
    ]);
    const jumps = steps().map(({ before, after }) => after - before);
    if (!jumps.every((jump) => Math.abs(jump) > LEAST_MS))
      throw new Error(`it jumped by ${jumps.join(', ')} ms`);
    // The second step of a process sets the clock back.
    const pids = steps().map(({ pid }) => pid);
    const twice = new Set(pids).size < pids.length;
    if (twice && !jumps.some((jump) => jump < 0))
      throw new Error(`it never jumped back: ${jumps.join(', ')} ms`);
    stage.strike(
      `the clock jumped ${jumps.length} times in the calls, by ${Math.min(...jumps)} to ${Math.max(...jumps)} ms`,
      new Map(jumpedAt),
    );
  },
};
