/** How long a session stops when the worker of its mutating call dies or freezes. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, Measure } from '../support/context.ts';
import { jobText } from '../support/job.ts';
import { type Measured, startMeasured } from '../support/processes.ts';
import type { Line } from '../support/report.ts';
import { median } from '../support/stats.ts';

const HEARTBEAT_MS = 2_000;
const TARGET_MS = { killed: HEARTBEAT_MS + 2_000, frozen: 10_000, replaced: 1_000 } as const;

interface Case {
  /** What happens to the worker that runs the tool. */
  blow: (worker: Measured) => Promise<unknown>;
  /** Whether the other worker is up before the blow. If not, it is started right after it. */
  peerUp: boolean;
  heartbeatMs: number;
}

const CASES = {
  killed: { blow: (worker) => worker.kill(), peerUp: true, heartbeatMs: HEARTBEAT_MS },
  frozen: { blow: async (worker) => worker.child.kill('SIGSTOP'), peerUp: true, heartbeatMs: HEARTBEAT_MS },
  replaced: { blow: (worker) => worker.kill(), peerUp: false, heartbeatMs: 60_000 },
} satisfies Record<string, Case>;

/**
 * Milliseconds from the blow to the next model request. For a successor that is started after the blow, they count from
 * its start, minus the start-up time of the first worker, which had nothing to recover.
 */
async function recover(context: Context, { blow, peerUp, heartbeatMs }: Case): Promise<number> {
  const { address } = await context.server();
  const { sessions } = await context.scene();
  const taskQueue = `recovery-${randomUUID()}`;
  const journal = await context.temporaryDir();
  const start = async (): Promise<Measured> => {
    const worker = startMeasured('recovery-worker', [address, taskQueue, String(heartbeatMs), journal]);
    await worker.said('ready');
    return worker;
  };
  const began = performance.now();
  const first = await start();
  const startMs = performance.now() - began;
  let second: Measured | undefined;
  try {
    const id = randomUUID();
    const message = jobText({ id, turns: 1, tool: 'mutate' });
    const session = await sessions.start('bench', { id, message, mode: 'task', taskQueue });
    await first.said('in-tool');
    if (peerUp) second = await start();
    // The blow comes at a random moment of the heartbeat interval.
    await sleep(Math.random() * (HEARTBEAT_MS / 4));
    let from = performance.now();
    await blow(first);
    if (second === undefined) {
      from = performance.now() + startMs;
      second = await start();
    }
    const { at } = await second.said('model', ({ turn }) => turn === 2);
    await session.result();
    return at - from;
  } finally {
    await first.kill();
    await second?.kill();
  }
}

/** Runs each case alone, several times. The results are seconds, not milliseconds. */
export const recovery: Measure = async (context) => {
  const samples: Record<keyof typeof CASES, number[]> = { killed: [], frozen: [], replaced: [] };
  for (let round = 0; round < (context.quick ? 1 : 5); round++) {
    for (const name of Object.keys(CASES) as (keyof typeof CASES)[]) {
      samples[name].push(await recover(context, CASES[name]));
    }
  }
  const line = (name: keyof typeof CASES, what: string): Line => ({
    measure: 'recovery',
    what,
    // A promise about recovery is about the worst case that was seen.
    value: Math.max(...samples[name]),
    unit: 'ms, the slowest',
    of: { medianMs: median(samples[name]) },
    samples: { ms: samples[name] },
    note: `heartbeat ${CASES[name].heartbeatMs / 1_000} s, settle 0`,
  });
  return [
    {
      ...line('killed', 'worker killed in a mutating call, another is up'),
      target: { atMost: TARGET_MS.killed },
    },
    {
      ...line('frozen', 'worker frozen in a mutating call, another is up'),
      target: { atMost: TARGET_MS.frozen },
    },
    {
      ...line(
        'replaced',
        'worker killed, from the start of its successor on the same host, beyond a bare start',
      ),
      target: { atMost: TARGET_MS.replaced },
    },
  ];
};
