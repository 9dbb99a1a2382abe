/** The people of the lab. They do what only people can do, and read the ledger before they answer. */
import { isPerdureError, type PendingCall, type SessionView } from 'perdure';
import { passing } from './patience.ts';
import type { Actor, Stage } from './stage.ts';
import { isKeyOf } from './story.ts';

/** Something that needed a person. */
export interface PersonRecord {
  readonly what: 'unknown' | 'stuck' | 'awaiting' | 'waiting' | 'approval';
  readonly callId: string | null;
  readonly reason: string;
}

/** Helps a session that waits for somebody. Otherwise does nothing. */
export function help(stage: Stage, actor: Actor, view: SessionView): Promise<void> {
  return unlessLate(async () => {
    if (actor.task.below !== undefined) await answerBelow(stage, actor);
    if (view.phase === 'unknown_effect') for (const call of view.pending) await settle(stage, actor, call);
    else if (view.phase === 'approval') {
      for (const call of view.pending) {
        actor.people.push({ what: 'approval', callId: call.callId, reason: '' });
        await actor.session.decide(call, { decision: 'approve' }, { by: 'lab' });
      }
    } else if (view.phase === 'waiting') {
      actor.people.push({ what: 'waiting', callId: null, reason: view.wait?.message ?? '' });
      await actor.session.resume({ by: 'lab' });
    }
  });
}

/** Answers, from the root of a tree, the calls that wait below it. */
export function helpBelow(stage: Stage, actor: Actor): Promise<void> {
  return unlessLate(() => answerBelow(stage, actor));
}

async function unlessLate(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    // The session has continued meanwhile, or a worker is away: the next read shows which.
    const codes = ['CALL_NOT_PENDING', 'DISPATCH_MISMATCH', 'UNKNOWN_CALL'] as const;
    if (!passing(error) && !codes.some((code) => isPerdureError(error, code))) throw error;
  }
}

async function answerBelow(stage: Stage, actor: Actor): Promise<void> {
  const { session, people } = actor;
  for (const { sessionId, call } of (await session.tree()).open) {
    if (call === null || sessionId === session.id) continue;
    if (call.status.kind === 'approval') {
      people.push({ what: 'approval', callId: call.callId, reason: '' });
      await session.decide({ ...call, sessionId }, { decision: 'approve' }, { by: 'lab' });
    } else await settle(stage, { ...actor, session: stage.harness.sessions.get(sessionId) }, call);
  }
}

/** Resolves a call with what the ledger says about its key. */
async function settle(stage: Stage, actor: Actor, call: PendingCall): Promise<void> {
  const { callId, idempotencyKey, status } = call;
  if (status.kind === 'approval') return;
  actor.people.push({ what: status.kind, callId, reason: 'reason' in status ? status.reason : '' });
  const row = stage.lane.ledger().find(({ key, args }) => isKeyOf(call, key, args.reason));
  const resolution =
    row === undefined
      ? ({ outcome: 'absent' } as const)
      : ({ outcome: 'landed', output: { id: row.id, at: row.at, ...row.args } } as const);
  if (status.kind === 'unknown') return void (await actor.session.resolve(call, resolution, { by: 'lab' }));
  // A global effect has its own workflow, and waits there. A missing tool may be back.
  const effect = stage.harness.sessions.get(`effect:${idempotencyKey}`);
  try {
    for (const pending of await effect.approvals()) {
      if (pending.status.kind === 'unknown') await effect.resolve(pending, resolution, { by: 'lab' });
    }
  } catch (error) {
    if (!isPerdureError(error, 'SESSION_NOT_FOUND')) throw error;
  }
  await actor.session.resume({ by: 'lab' });
}
