/** Sub-agents beside bare child workflows, and the time of a decision from the root of a tree to its leaf. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from '../../src/index.ts';
import type { Measure } from '../support/context.ts';
import { type Actions, actionsLine, countedScene, minus } from '../support/counted.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';
import { AT_ONCE, openTrees, type Trees } from '../support/trees.ts';
import { until } from '../support/until.ts';

const DEPTH = 5;
/** The pause between reading the tree and the decision, so that the session is at rest. */
const REST_MS = 100;

/** Approves the next call of a tree at its root. @returns milliseconds until the call runs */
async function decided(root: Session, trees: Trees): Promise<number> {
  const { call, sessionId } = await until(
    async () => (await root.tree()).open.find((item) => item.call !== null),
    { everyMs: 50 },
  );
  if (call === null) throw new Error('nothing waits');
  await delay(REST_MS);
  const from = performance.now();
  await root.decide({ ...call, sessionId }, { decision: 'approve' });
  await until(() => trees.ranAt() > from);
  return trees.ranAt() - from;
}

export const trees: Measure = async (context) => {
  const children = context.quick ? 12 : 50;
  const rounds = context.quick ? 3 : 7;
  const { client, address } = await context.scene();
  const open = await openTrees(client, address, await context.temporaryDir());
  const perChild = (run: (children: number) => Promise<void>) => async (): Promise<number> => {
    const from = performance.now();
    await run(children);
    return (performance.now() - from) / children;
  };
  const arms = { ours: perChild(open.runOurs), floor: perChild(open.runFloor) };
  await interleave(1, arms);
  const times = await interleave(rounds, arms);
  const decisions = context.quick ? 5 : 20;
  const root = await open.startDeep(DEPTH, decisions + 1);
  const single = await open.startDeep(0, decisions + 1);
  const ways = { deep: () => decided(root, open), single: () => decided(single, open) };
  await interleave(1, ways);
  const ms = await interleave(decisions, ways);
  await Promise.all([root.result(), single.result()]);
  await open.close();

  const counted = await countedScene(context);
  const stock = await openTrees(counted.scene.client, counted.scene.address, await context.temporaryDir());
  // The difference between two trees, divided by the difference of their children. The fixed cost of the parent cancels
  // out.
  const ofChild = async (run: (children: number) => Promise<void>): Promise<Actions> =>
    minus(await counted.during(() => run(12)), await counted.during(() => run(4)), 8);
  const ours = await ofChild(stock.runOurs);
  const floor = await ofChild(stock.runFloor);
  await stock.close();
  const what = 'a turn with a read and a last reply';
  return [
    {
      measure: 'trees',
      what: `time per sub-agent, ${AT_ONCE} at a time, against a bare child workflow with as many model calls`,
      value: medianRatio(times.ours, times.floor),
      unit: '×',
      target: { atMost: 1.5 },
      of: { ms: median(times.ours), floorMs: median(times.floor) },
      samples: times,
      note: `${rounds} trees of ${children} children; each has ${what}, as the child workflow has two model activities`,
    },
    actionsLine('trees', `Actions of a sub-agent of ${what}`, ours, { note: 'with those of its parent' }),
    actionsLine('trees', 'Actions of a bare child workflow with two model activities', floor, {
      note: 'with those of its parent',
    }),
    {
      measure: 'trees',
      what: `from a decision at the root to the call it approves, ${DEPTH} levels below, against a single session`,
      value: medianRatio(ms.deep, ms.single),
      unit: '×',
      target: { atMost: 3 },
      of: { ms: median(ms.deep), singleMs: median(ms.single) },
      samples: ms,
      note: `${decisions} decisions each in turn`,
    },
  ];
};
