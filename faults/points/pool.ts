import type { PoolView, Session } from 'perdure';
import { PATIENCE_MS } from '../patience.ts';
import { sessionsBelow } from '../trees.ts';
import { type FaultPoint, kill } from './point.ts';

const BEFORE = 'before draw';
const AFTER = 'after draw';
/** More than the sessions of a story need. */
const CAPS = { usd: 100, tokens: 10_000_000 } as const;

/** SIGKILL while sessions draw money from their shared pool, and while they report what they used. */
export const pool: FaultPoint = {
  name: 'pool',
  about:
    'Sessions share a pool of money. The worker is killed (SIGKILL) before they draw, the next one when they have drawn and this is not recorded, and the third when they have told the pool what they have used and this is not recorded.',
  anyService: true,
  steps: ['model-asked'],
  kinds: () => ['read', 'idempotent', 'mutate', 'blind'],
  oneTurn: true,
  inject: async (stage) => {
    const shared = stage.harness.sessions.pool(`pool-${stage.harness.taskQueue}`);
    const first = await stage.startWorker({ breakAt: [BEFORE] });
    await shared.set(CAPS);
    await stage.begin({ pool: shared.id });
    const all = async (worker: typeof first, point: string): Promise<void> => {
      for (const _ of stage.actors) await worker.reached(point);
    };
    await all(first, BEFORE);
    const at = Date.now();
    const before = await kill(first, 'all');
    const second = await stage.startWorker({ breakAt: [AFTER] });
    await all(second, AFTER);
    const drawn = await kill(second, 'all');
    const third = await stage.startWorker({ breakAt: [AFTER] });
    // Sessions repeat their draws, and at rest they report what they have used.
    await all(third, AFTER);
    third.release(AFTER);
    await all(third, AFTER);
    const told = await kill(third, 'all');
    await stage.startWorker();
    stage.strike(`${before} before the draw, ${drawn} after it, ${told} after the next one`, at);
    return () =>
      agrees(
        stage.actors.map(({ session }) => session),
        () => shared.get(),
      );
  },
};

/** How many workers die in a tree. */
const DEATHS = 5;

/** SIGKILL while the sessions of a tree draw from the shared pool of its caps, and give money back. */
export const poolTree: FaultPoint = {
  name: 'pool-tree',
  about:
    'The sessions of a tree share its caps as one pool. Five workers in a row are killed (SIGKILL), each when a session has drawn or given back and this is not recorded.',
  anyService: true,
  steps: ['delegated'],
  // The kind of the lowest call makes no difference to money.
  kinds: () => ['mutate'],
  oneTurn: true,
  inject: async (stage) => {
    const dead: string[] = [];
    let at = 0;
    for (let death = 1; death <= DEATHS; death++) {
      const worker = await stage.startWorker({ breakAt: [AFTER] });
      if (death === 1) await stage.begin({ agent: 'director', budget: CAPS });
      // The draw of the dead worker is repeated first, then comes the next draw.
      for (let visit = 1; visit <= Math.min(2, death); visit++) {
        if (visit > 1) worker.release(AFTER);
        for (const _ of stage.actors) await worker.reached(AFTER);
      }
      at ||= Date.now();
      dead.push(await kill(worker, 'all'));
    }
    await stage.startWorker();
    stage.strike(`${dead.join(', ')}, each after a draw`, at);
    return async () => {
      for (const { session } of stage.actors) {
        const below = await sessionsBelow(stage, session);
        const all = [session, ...below.map((each) => each.session)];
        await agrees(all, () => stage.harness.sessions.pool(`tree/${session.id}`).get());
      }
    };
  },
};

/** @throws if a pool at rest does not have what its sessions have used, or still holds something for them. */
async function agrees(sessions: readonly Session[], look: () => Promise<PoolView>): Promise<void> {
  const spent = await Promise.all(sessions.map(async (session) => (await session.budget()).spent));
  const used = {
    tokens: spent.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
    usd: spent.reduce((sum, { usd }) => sum + usd, 0),
  };
  const isExact = (view: PoolView): boolean =>
    view.spent.tokens === used.tokens &&
    Math.abs(view.spent.usd - used.usd) < 1e-9 &&
    view.held.tokens === 0 &&
    view.held.usd === 0 &&
    view.waiting.length === 0;
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const view = await look();
    if (isExact(view)) return;
    if (Date.now() > deadline)
      throw new Error(
        `its sessions have used ${JSON.stringify(used)}, the pool says ${JSON.stringify(view)}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
