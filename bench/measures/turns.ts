/** Wall time and server-side cost of a turn against the floor. */
import type { Measure } from '../support/context.ts';
import type { BenchTool } from '../support/job.ts';
import type { Line } from '../support/report.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';

const TARGETS = { mutate: 1.05, read: 0.55 } as const;

/** Sessions at once, and how often: until Node has compiled the code, a turn takes up to half as much time again. */
const WARM_UP = { sessions: 20, times: 5 } as const;

/**
 * One session at a time, all of equal length, after a warm-up. A turn is the time from one model request to the next. A
 * round runs each arm once, and ratios compare values of one round.
 */
export const turns: Measure = async (context) => {
  const scene = await context.scene();
  const count = context.quick ? 15 : 40;
  const rounds = context.quick ? 3 : 15;
  const mean = (times: readonly number[]): number =>
    times.reduce((sum, time) => sum + time, 0) / times.length;
  const arms = {
    floor: async () => mean((await scene.runFloor(count)).turnMs),
    mutate: async () => mean((await scene.runOurs('mutate', count)).turnMs),
    read: async () => mean((await scene.runOurs('read', count)).turnMs),
  };
  const { sessions, times } = context.quick ? { sessions: 5, times: 1 } : WARM_UP;
  for (const run of Object.values(arms)) {
    for (let i = 0; i < times; i++) await Promise.all(Array.from({ length: sessions }, run));
  }
  const samples = await interleave(rounds, arms);
  return (Object.keys(TARGETS) as BenchTool[]).map((tool): Line => {
    return {
      measure: 'turns',
      what: `wall time per turn, ${tool} tool, against the floor`,
      value: medianRatio(samples[tool], samples.floor),
      unit: 'x',
      target: { atMost: TARGETS[tool] },
      of: { ms: median(samples[tool]), floorMs: median(samples.floor) },
      samples: { ms: samples[tool], floorMs: samples.floor },
      note: `${rounds} rounds of ${count} turns, interleaved`,
    };
  });
};
