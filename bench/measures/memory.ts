/** The memory of a worker with many sessions that wait for a person. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleFloor } from '../floor/bundle.ts';
import type { Context, Measure } from '../support/context.ts';
import type { Line } from '../support/report.ts';
import { AT_ONCE, openWaiting } from '../support/waiting-sessions.ts';

const MB = 2 ** 20;

interface Held {
  /** Bytes before the first session and with the last. */
  before: number;
  after: number;
  cached: number;
}

async function holding(
  context: Context,
  side: 'ours' | 'floor',
  count: number,
  bundle: string,
): Promise<Held> {
  const { worker, start, memory: memoryNow } = await openWaiting(context, side, bundle);
  try {
    // The first sessions load what is loaded only once.
    await start(AT_ONCE);
    const { rss: before } = await memoryNow();
    await start(count);
    const { rss: after, cached } = await memoryNow();
    return { before, after, cached };
  } finally {
    await worker.kill();
  }
}

/** Each side has its own process. The floor's workflows wait for a signal after one model call. */
export const memory: Measure = async (context) => {
  const count = context.quick ? 100 : 1_000;
  const bundle = join(await context.temporaryDir(), 'floor.cjs');
  await writeFile(bundle, (await bundleFloor()).code);
  const ours = await holding(context, 'ours', count, bundle);
  const floor = await holding(context, 'floor', count, bundle);
  const perSession = ({ before, after }: Held): number => (after - before) / count / 1_024;
  return [
    {
      measure: 'memory',
      what: `worker with ${count} sessions that wait for a person`,
      value: ours.after / MB,
      unit: 'MB resident',
      of: { floorMb: floor.after / MB, cached: ours.cached, floorCached: floor.cached },
    },
    {
      measure: 'memory',
      what: 'one waiting session',
      value: perSession(ours),
      unit: 'KB',
      of: { floorKb: perSession(floor) },
    },
  ] satisfies Line[];
};
