/**
 * Ten thousand sessions that wait for a decision, on one worker: its memory, and how fast a decision brings one back.
 */
import { argsDigest } from '../../src/contract/keys.ts';
import type { Measure } from '../support/context.ts';
import { callArgs } from '../support/job.ts';
import { median } from '../support/stats.ts';
import { openWaiting } from '../support/waiting-sessions.ts';

const MB = 2 ** 20;
const PLAN = { full: { sessions: 10_000, decisions: 200 }, quick: { sessions: 100, decisions: 10 } } as const;

export const waiting: Measure = async (context) => {
  const { sessions: count, decisions } = PLAN[context.quick ? 'quick' : 'full'];
  const { sessions } = await context.scene();
  const { worker, start, memory } = await openWaiting(context, 'ours');
  try {
    const ids = await start(count);
    const { rss, cached } = await memory();
    // The call of the first turn. Reading the approvals first would bring the session into the worker's cache.
    const call = { callId: 'call_1_0', argsDigest: argsDigest('mutate', callArgs(1)) };
    const backMs: number[] = [];
    for (let i = 0; i < decisions; i++) {
      const id = ids[Math.floor((i * count) / decisions)] ?? '';
      const decided = performance.now();
      await sessions.get(id).decide(call, { decision: 'approve' });
      const { at } = await worker.said('tool', ({ of }) => of === id);
      backMs.push(at - decided);
    }
    const sorted = backMs.toSorted((a, b) => a - b);
    return [
      {
        measure: 'waiting',
        what: `worker with ${count} sessions that wait for a person`,
        value: rss / MB,
        unit: 'MB resident',
        target: { atMost: 600 },
        of: { cached },
      },
      {
        measure: 'waiting',
        what: 'from a decision to the start of the tool, median',
        value: median(backMs),
        unit: 'ms',
        target: { atMost: 1_000 },
        of: { p95Ms: sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN },
        samples: { ms: backMs },
        note: `${decisions} sessions, evenly over all; most are not in the worker's cache`,
      },
    ];
  } finally {
    await worker.kill();
  }
};
