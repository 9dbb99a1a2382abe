/** History bytes of a turn against the floor, and whether they grow with the session. */

import type { Client } from '@temporalio/client';
import { ACTIVITY } from '../../src/contract/names.ts';
import { readEvents } from '../../src/temporal/index.ts';
import type { Measure } from '../support/context.ts';
import type { BenchTool } from '../support/job.ts';
import type { Line } from '../support/report.ts';
import { median } from '../support/stats.ts';

/** The activity that asks the model: ours, and the floor's. */
const ASKS: readonly unknown[] = [ACTIVITY.model, 'model'];

const TARGETS = { mutate: 0.9, read: 0.6 } as const;

/** Bytes and events of each turn: from the workflow task that asks the model to the one that asks it again. */
async function turnSizes(client: Client, workflowId: string): Promise<{ bytes: number[]; events: number[] }> {
  const marks: { bytes: number; event: number }[] = [];
  let task = { bytes: 0, event: 0 };
  for await (const event of readEvents(client, { workflowId })) {
    const started = event.workflowTaskStartedEventAttributes;
    if (started) task = { bytes: Number(started.historySizeBytes ?? 0), event: Number(event.eventId) };
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled && ASKS.includes(scheduled.activityType?.name)) marks.push(task);
  }
  const steps = <K extends 'bytes' | 'event'>(key: K): number[] =>
    marks.slice(1).map((mark, i) => mark[key] - (marks[i]?.[key] ?? 0));
  return { bytes: steps('bytes'), events: steps('event') };
}

/** The same sessions as in `turns`, and one of 500 turns and more. */
export const bytes: Measure = async (context) => {
  const scene = await context.scene();
  const count = 30;
  const sizes = async (workflowId: string): Promise<{ bytes: number; events: number }> => {
    const found = await turnSizes(scene.client, workflowId);
    return { bytes: median(found.bytes), events: median(found.events) };
  };
  const floor = await sizes((await scene.runFloor(count)).workflowId);
  const lines: Line[] = [];
  for (const tool of Object.keys(TARGETS) as BenchTool[]) {
    const ours = await sizes((await scene.runOurs(tool, count)).workflowId);
    lines.push({
      measure: 'bytes',
      what: `history bytes per turn, ${tool} tool, against the floor`,
      value: ours.bytes / floor.bytes,
      unit: 'x',
      target: { atMost: TARGETS[tool] },
      of: {
        bytes: ours.bytes,
        floorBytes: floor.bytes,
        events: ours.events,
        floorEvents: floor.events,
      },
    });
  }
  const long = await context.longSession();
  const grown = (await turnSizes(scene.client, long.workflowId)).bytes;
  const late = Math.min(500, grown.length - 6);
  const around = (turn: number): number => median(grown.slice(turn - 5, turn + 5));
  lines.push({
    measure: 'bytes',
    what: `history bytes of turn ${late} against turn 10`,
    value: around(late) / around(10),
    unit: 'x',
    target: { atMost: 1.05 },
    of: { bytes: around(late), bytesOfTurn10: around(10) },
  });
  const times = long.turnMs;
  lines.push({
    measure: 'bytes',
    what: `wall time of turn ${late} against turn 10`,
    value: median(times.slice(late - 20, late + 20)) / median(times.slice(5, 45)),
    unit: 'x',
    of: { ms: median(times.slice(late - 20, late + 20)), msOfTurn10: median(times.slice(5, 45)) },
  });
  return lines;
};
