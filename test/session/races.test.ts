import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { openStage } from '../support/stage.ts';
import { act, action, racer, script, settle } from './support/racing.ts';
import { expectSound } from './support/sound.ts';

const SEED = Number(process.env['PERDURE_SEED'] ?? 20_251);
/** Sessions on a busy machine are slow; a failure shows at once. */
vi.setConfig({ testTimeout: 300_000 });

const RUNS = Number(process.env['PERDURE_RUNS'] ?? 8);

test(`whatever a client does and when, the fold is the live state and the history replays (seed ${SEED})`, async () => {
  const stage = await openStage(script);
  await stage.startWorker([racer(stage)]);
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 14 }), async (actions) => {
      const session = await stage.sessions.start('racer', { id: stage.id(), message: 'go' });
      for (const next of actions) await act(stage, session, next);
      await settle(session);
      expect((await expectSound(stage, session)).checkpoints.length).toBeGreaterThan(0);
    }),
    // A failing schedule is shown as it is: shrinking would run many sessions more.
    { seed: SEED, numRuns: RUNS, endOnFailure: true },
  );
});

test(`several clients at once, in one session (seed ${SEED})`, async () => {
  const stage = await openStage(script);
  await stage.startWorker([racer(stage)], { maxCachedWorkflows: 2 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(action, { maxLength: 6 }), { minLength: 2, maxLength: 4 }),
      async (clients) => {
        const session = await stage.sessions.start('racer', { id: stage.id(), message: 'go' });
        await Promise.all(
          clients.map(async (actions) => {
            for (const next of actions) await act(stage, session, next);
          }),
        );
        await settle(session);
        expect((await expectSound(stage, session)).checkpoints.length).toBeGreaterThan(0);
      },
    ),
    { seed: SEED + 1, numRuns: Math.ceil(RUNS / 2), endOnFailure: true },
  );
});

test(`workers that forget everything after each task (seed ${SEED})`, async () => {
  const stage = await openStage(script);
  const agents = [racer(stage)];
  const forgetful = { maxCachedWorkflows: 0, memoryBytes: 1 };
  await Promise.all([stage.startWorker(agents, forgetful), stage.startWorker(agents, forgetful)]);
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 10 }), async (actions) => {
      const session = await stage.sessions.start('racer', { id: stage.id(), message: 'go' });
      for (const next of actions) await act(stage, session, next);
      await settle(session);
      expect((await expectSound(stage, session)).checkpoints.length).toBeGreaterThan(0);
    }),
    { seed: SEED + 2, numRuns: Math.ceil(RUNS / 3), endOnFailure: true },
  );
});
