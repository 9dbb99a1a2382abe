import { type FaultPoint, kill } from './point.ts';

/**
 * A global effect certainly did not happen, and its worker dies before it tells anybody. Then the effect is requested
 * again.
 */
export const certainFailure: FaultPoint = {
  name: 'certain-failure',
  about:
    'A global effect certainly fails, its worker is killed (SIGKILL) before it has told the sessions that wait, and another session asks for the same effect.',
  anyService: true,
  steps: ['telling'],
  kinds: () => ['global'],
  // The two waiting sessions are told that the effect did not happen.
  fails: ['global'],
  oneTurn: true,
  inject: async (stage) => {
    const worker = await stage.startWorker({ env: { LAB_REFUSES: '1' }, holdAt: ['telling'] });
    await stage.begin();
    await stage.held(worker);
    const at = Date.now();
    const dead = await kill(worker);
    await stage.startWorker();
    const untilCalls = (kind: string): Promise<void> =>
      stage.until(async (_, { session, landed }) => {
        const [call] = (await session.calls()).items;
        return landed !== null || call?.status.kind === kind;
      });
    await untilCalls('failed');
    stage.strike(`${dead}, both calls have failed for certain`, at);
    // The failure is not kept: it answers no later call.
    await stage.begin({ globally: [3] });
    await untilCalls('completed');
    stage.strike(`${dead}, both calls have failed for certain, and the next one has happened`, at);
  },
};
