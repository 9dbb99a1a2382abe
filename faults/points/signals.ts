import { isPerdureError, type Session } from 'perdure';
import { retried } from '../patience.ts';
import type { Stage } from '../stage.ts';
import { shuffled } from '../story.ts';
import type { FaultPoint } from './point.ts';

/** The number of signals that each session gets. */
const SIGNALS = 5;

/** All messages and requests of people arrive more than once, and out of order. */
export const signals: FaultPoint = {
  name: 'signals',
  about: 'Messages, decisions, pauses and resumes arrive twice and in any order.',
  anyService: true,
  steps: ['in-call', 'approval'],
  // A pause withdraws a request that is under way.
  unseen: 1,
  inject: async (stage) => {
    const { step } = stage.story;
    const worker = await stage.startWorker({ holdAt: step === 'approval' ? [] : [step] });
    await stage.begin(step === 'approval' ? { mode: 'ask' } : {});
    if (step === 'approval') await stage.until(({ phase }) => phase === 'approval');
    else await stage.held(worker);
    const orders: string[] = [];
    const saidAt = new Map<string, number>();
    for (const { session, acknowledged } of stage.actors) {
      saidAt.set(session.id, Date.now());
      orders.push(await sayAll(stage, session));
      acknowledged.push('twice');
      await session.resume({ by: 'lab' });
      await session.resume({ by: 'lab' });
    }
    stage.letGo(worker);
    // Temporal holds back signals that arrive during a workflow task until the task has ended.
    await stage.until(async (_, { session }) => (await stage.signals(session.id)) >= SIGNALS);
    stage.strike(`${SIGNALS} signals are in every history; said: ${orders.join('; ')}`, saidAt);
  },
};

/**
 * Sends everything at once, in random order. Returns that order.
 *
 * @throws when a copy gets the wrong answer: a repeated message must get the answer of the first, a second decision
 * must get the first decision.
 */
async function sayAll({ story, random }: Stage, session: Session): Promise<string> {
  const [pending] = await retried(() => session.approvals());
  if (pending === undefined && story.step === 'approval') throw new Error('there is nothing to decide');
  const send = (): Promise<unknown> => session.send({ id: 'twice', text: 'A word twice.' });
  const pause = (): Promise<unknown> => session.pause({ by: 'lab' });
  const decided: { readonly by: string; readonly refusal: unknown }[] = [];
  const said: [string, () => Promise<unknown>][] = [
    ['pause', pause],
    ['pause', pause],
    ['resume', () => session.resume({ by: 'lab' })],
    ['send', send],
    ['send', send],
  ];
  for (const by of ['ann', 'bea']) {
    if (pending === undefined) break;
    const decide = (): Promise<unknown> =>
      session.decide(pending, { decision: 'approve' }, { by }).then(
        () => decided.push({ by, refusal: null }),
        (refusal: unknown) => decided.push({ by, refusal }),
      );
    said.push([`decide as ${by}`, decide]);
  }
  const order = shuffled(said, random);
  await Promise.all(order.map(([, say]) => say()));
  const winners = decided.filter(({ refusal }) => refusal === null).map(({ by }) => by);
  if (winners.length !== Math.min(1, decided.length)) throw new Error(`taken: ${JSON.stringify(decided)}`);
  for (const { by, refusal } of decided) {
    if (refusal === null) continue;
    if (!isPerdureError(refusal, 'CALL_NOT_PENDING'))
      throw new Error(`${by} was refused`, { cause: refusal });
    const won = (refusal.details['decision'] as { by?: string } | null)?.by;
    if (won !== winners[0]) throw new Error(`${by} was told that ${won} had decided`);
  }
  return order.map(([what]) => what).join(', ');
}
