import { type FaultPoint, kill } from './point.ts';

/** A global effect that certainly did not happen, whose worker dies before anybody is told; then it is asked for again. */
export const certainFailure: FaultPoint = {
  name: 'certain-failure',
  about:
    'A global effect certainly fails, its worker is killed (SIGKILL) before it has told the sessions that wait, and another session asks for the same effect.',
  anyService: true,
  steps: ['telling'],
  kinds: () => ['global'],
  // The two sessions that wait are told that it was not done.
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
    // The failure ends at once: it answers nobody else.
    await stage.begin({ globally: [3] });
    await untilCalls('completed');
    stage.strike(`${dead}, both calls have failed for certain, and the next one has happened`, at);
  },
};
