/** What a reader's heap holds while it lists the checkpoints of a history of 50,000 events, page by page. */
import { readEvents } from '../../src/temporal/index.ts';
import type { Context, Measure } from '../support/context.ts';
import { jobText } from '../support/job.ts';
import { type Said, startMeasured } from '../support/processes.ts';
import type { Line } from '../support/report.ts';
import type { Scene } from '../support/scene.ts';

const MB = 2 ** 20;
/**
 * A run ends by itself at 15,000 events, so the history spans several runs. Each run but the first is a rewind. Runs
 * are short, because a page holds whole states: for a run of 1,000 turns they take minutes to build.
 */
const EVENTS = { full: 50_000, quick: 3_000 } as const;
const TURNS = { full: 420, quick: 120 } as const;
/** The listing takes minutes. */
const LISTED_WITHIN_MS = 1_800_000;
const PAGE = { large: 100, small: 10 } as const;

interface History {
  id: string;
  events: number;
  runs: number;
}

/** A session that was rewound to its beginning several times, and did its turns each time. */
async function longHistory(scene: Scene, quick: boolean): Promise<History> {
  const size = quick ? 'quick' : 'full';
  const { client, sessions } = scene;
  const { workflowId: id } = await scene.runOurs('read', TURNS[size]);
  const handle = client.workflow.getHandle(id);
  const checkpointId = `${(await handle.describe()).runId}:${await firstTask(client, id)}`;
  let events = 0;
  for (let runs = 1; ; runs++) {
    events += (await handle.describe()).historyLength;
    if (events >= EVENTS[size]) return { id, events, runs };
    const again = await sessions.rewind(
      { sessionId: id, checkpointId },
      {
        agent: 'bench',
        by: 'bench',
        reason: 'once more',
        message: jobText({ id, turns: TURNS[size], tool: 'read' }),
      },
    );
    await again.result();
  }
}

async function firstTask(client: Scene['client'], workflowId: string): Promise<number> {
  for await (const event of readEvents(client, { workflowId })) {
    if (event.workflowTaskCompletedEventAttributes) return Number(event.eventId);
  }
  throw new Error(`${workflowId} has no checkpoint`);
}

async function listed(context: Context, id: string, limit: number, befores: string[] = []): Promise<Said> {
  const { address } = await context.server();
  const args = [address, id, String(limit), JSON.stringify(befores)];
  const reader = startMeasured('list-pages', args, ['--expose-gc']);
  try {
    return await reader.said('listed', undefined, LISTED_WITHIN_MS);
  } finally {
    await reader.kill();
  }
}

/** Each page size gets its own process. */
export const listing: Measure = async (context) => {
  const { id, events, runs } = await longHistory(await context.scene(), context.quick);
  const large = await listed(context, id, PAGE.large);
  // The same number of small pages, before the same checkpoints. Listing everything in small pages would read each run
  // hundreds of times.
  const small = await listed(context, id, PAGE.small, large.lasts);
  const line = (limit: number, { peaks = [], before = 0, checkpoints = 0 }: Said): Line => {
    // The newest checkpoints of a run are the largest, so the first pages show the peak.
    const early = Math.max(...peaks.slice(0, Math.ceil(peaks.length / runs)));
    return {
      measure: 'listing',
      what: `heap while listing a history of ${events} events by ${limit}, the peak against that of its newest ${Math.round(100 / runs)} %`,
      value: Math.max(...peaks) / early,
      unit: 'x',
      target: { atMost: 1.5 },
      of: { peakMb: Math.max(...peaks) / MB, beforeMb: before / MB, pages: peaks.length, checkpoints },
      samples: { peakMb: peaks.map((bytes) => bytes / MB) },
      note: `${runs} runs of one session, by rewind; looked at every 200 ms, after a collection`,
    };
  };
  return [line(PAGE.small, small), line(PAGE.large, large)];
};
