import { retried } from '../stage.ts';
import type { FaultPoint } from './point.ts';

/** Everything that people say arrives more than once, and out of order. */
export const signals: FaultPoint = {
  name: 'signals',
  about: 'Messages, decisions, pauses and resumes arrive twice and in any order.',
  anyService: true,
  steps: ['in-call', 'approval'],
  inject: async (stage) => {
    const { step } = stage.story;
    const worker = await stage.startWorker({ holdAt: step === 'approval' ? [] : [step] });
    await stage.begin(step === 'approval' ? { mode: 'ask' } : {});
    if (step === 'approval') await stage.until(({ phase }) => phase === 'approval');
    else await stage.held(worker);
    for (const { session } of stage.actors) {
      const [pending] = await retried(() => session.approvals());
      const said = [
        session.pause({ by: 'lab' }),
        session.resume({ by: 'lab' }),
        session.pause({ by: 'lab' }),
        session.send({ id: 'twice', text: 'A word twice.' }),
        session.send({ id: 'twice', text: 'A word twice.' }),
        ...(pending === undefined
          ? []
          : [1, 2].map(() => session.decide(pending.callId, { decision: 'approve' }, { by: 'lab' }))),
      ];
      await Promise.allSettled(said);
      await session.resume({ by: 'lab' });
      await session.resume({ by: 'lab' });
    }
    stage.letGo(worker);
    // Temporal keeps what comes during a workflow task back until the task has ended.
    await stage.until(async (_, { session }) => (await stage.signals(session.id)) >= 5);
    stage.strike('five signals are in every history');
  },
};
