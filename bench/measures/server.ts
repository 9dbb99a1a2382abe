/** The embedded server against the stock one, and whether sessions outlive a crash of it. */
import { SESSION_SEARCH_ATTRIBUTES, startServer } from '../../src/server/index.ts';
import type { Context, Measure } from '../support/context.ts';
import type { Line } from '../support/report.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { interleave, median, medianRatio } from '../support/stats.ts';
import { stockScene } from '../support/stock.ts';
import { until } from '../support/until.ts';

const SESSIONS = 5;

/** Kills the server in the middle of sessions' turns, and restarts it over its file. */
async function survivors(context: Context): Promise<{ completed: number; seconds: number }> {
  const server = await startServer({
    dir: await context.temporaryDir(),
    searchAttributes: SESSION_SEARCH_ATTRIBUTES,
  });
  context.onClose(() => server.stop());
  const scene = await openScene(server.address);
  context.onClose(() => scene.close());
  const running = Array.from({ length: SESSIONS }, () => scene.runOurs('read', 30));
  await until(() => scene.requests() >= SESSIONS * 5);
  const killed = performance.now();
  await server.kill();
  await server.restart();
  const ended = await Promise.allSettled(running);
  return {
    completed: ended.filter((end) => end.status === 'fulfilled' && end.value.turnMs.length === 30).length,
    seconds: (performance.now() - killed) / 1_000,
  };
}

/** The same floor workflow on both; only the server differs. */
export const server: Measure = async (context) => {
  const tuned = await context.scene();
  const stock = await stockScene(context);
  const turnMs = async (scene: Scene): Promise<number> => median((await scene.runFloor(10)).turnMs);
  const arms = { embedded: () => turnMs(tuned), stock: () => turnMs(stock) };
  await interleave(1, arms);
  const samples = await interleave(context.quick ? 2 : 7, arms);
  const { completed, seconds } = await survivors(context);
  return [
    {
      measure: 'server',
      what: 'stock dev server per turn, against the embedded one',
      value: medianRatio(samples.stock, samples.embedded),
      unit: 'x',
      target: { atLeast: 8 },
      of: { stockMs: median(samples.stock), embeddedMs: median(samples.embedded) },
      samples: { stockMs: samples.stock, embeddedMs: samples.embedded },
    },
    {
      measure: 'server',
      what: `of ${SESSIONS} running sessions survive its SIGKILL`,
      value: completed,
      unit: '',
      target: { atLeast: SESSIONS },
      of: { secondsToTheLastEnd: seconds },
    },
  ] satisfies Line[];
};
