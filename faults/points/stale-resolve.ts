import { isPerdureError } from 'perdure';
import { type FaultPoint, kill } from './point.ts';

/** Two people look at the same lost dispatch. The answer of the second arrives when another dispatch has been lost. */
export const staleResolve: FaultPoint = {
  name: 'stale-resolve',
  about:
    'A person says that a lost dispatch is absent, the next one lands and its worker is killed, and then another person says of the first dispatch that it is absent.',
  steps: ['landed'],
  // The other kinds are verified: no person is asked.
  kinds: () => ['blind'],
  oneTurn: true,
  inject: async (stage) => {
    const first = await stage.startWorker({ holdAt: ['gap'] });
    await stage.begin();
    await stage.held(first, 'gap');
    await kill(first, 'all');
    const second = await stage.startWorker({ holdAt: ['landed'] });
    await stage.until(({ phase }) => phase === 'unknown_effect');
    const seen = await Promise.all(
      stage.actors.map(async ({ session }) => {
        const [call] = await session.approvals();
        if (call === undefined) throw new Error(`${session.id} asks nobody`);
        await session.resolve(call, { outcome: 'absent' }, { by: 'ann' });
        return { session, call };
      }),
    );
    await stage.held(second, 'landed');
    const at = Date.now();
    const dead = await kill(second, 'all');
    await stage.startWorker();
    await stage.until(({ phase }) => phase === 'unknown_effect');
    for (const { session, call } of seen) {
      try {
        await session.resolve(call, { outcome: 'absent' }, { by: 'bea' });
        throw new Error(`${session.id} has taken a word about another dispatch`);
      } catch (error) {
        if (!isPerdureError(error, 'DISPATCH_MISMATCH')) throw error;
      }
    }
    stage.strike(`${dead}, the second word was refused: DISPATCH_MISMATCH`, at);
  },
};
