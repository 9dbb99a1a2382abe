/** Undoing the effects of a session: `cancel` with `undo`. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  type DefinedAgent,
  defineAgent,
  defineTool,
  effectsSince,
  type JsonObject,
  NotAttemptedError,
  type Session,
  type SessionState,
  TemporalSaver,
  undoPlanSince,
} from '../../src/index.ts';
import { deletePieces } from '../../src/temporal/past.ts';
import { expectSound } from '../session/support/sound.ts';
import { decide, resolve } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { openStage, type RunningWorker, type Stage, until, untilPhase } from '../support/stage.ts';

/** A travel agency: what is booked, by key, and what it was asked for, in order. */
class Agency {
  readonly booked = new Map<string, string>();
  readonly log: string[] = [];
  /** The next cancellations fail in this way. */
  readonly faults: ('refused' | 'lost')[] = [];

  agent(stage: Stage, options: { runTurns?: number } = {}): DefinedAgent {
    const bookArgs = z.object({ what: z.string() });
    return defineAgent({
      name: 'travel',
      model: stage.provider('m'),
      instructions: 'Book it.',
      ...options,
      tools: {
        book: defineTool({
          inputSchema: bookArgs,
          settle: 0,
          execute: ({ what }, { idempotencyKey }) => {
            this.booked.set(idempotencyKey, what);
            this.log.push(`book ${what}`);
            return { reference: `ref ${what}` };
          },
          compensate: {
            execute: ({ what }, { reference }, { effect, idempotencyKey }) => {
              const fault = this.faults.shift();
              if (fault === 'refused') throw new NotAttemptedError('too late', { retryable: false });
              if (idempotencyKey === effect.idempotencyKey) throw new Error('a key for two effects');
              this.booked.delete(effect.idempotencyKey);
              this.log.push(`cancel ${what} ${reference}`);
              if (fault === 'lost') throw new Error('no reply');
              return 'cancelled';
            },
            verify: (_, __, { effect }) =>
              this.booked.has(effect.idempotencyKey)
                ? { outcome: 'absent' }
                : { outcome: 'landed', output: 'gone' },
          },
        }),
        letter: defineTool({
          inputSchema: z.object({ to: z.string() }),
          execute: ({ to }) => {
            this.log.push(`letter ${to}`);
            return 'sent';
          },
        }),
      },
    });
  }
}

const HOTEL = { name: 'book', args: { what: 'hotel' } };
const FLIGHT = { name: 'book', args: { what: 'flight' } };
const LETTER = { name: 'letter', args: { to: 'Ada' } };

/** A session that has booked a hotel, written a letter, and booked a flight. */
async function booked(
  options: { runTurns?: number } = {},
): Promise<{ stage: Stage; agency: Agency; session: Session; worker: RunningWorker }> {
  const stage = await openStage(({ toolResults }) => {
    const next = [HOTEL, LETTER, FLIGHT][toolResults.length];
    return next === undefined ? { text: 'done' } : { toolCalls: [next] };
  });
  const agency = new Agency();
  const worker = await stage.startWorker([agency.agent(stage, options)]);
  const session = await stage.sessions.start('travel', { id: stage.id(), message: 'a trip' });
  await untilPhase(session, 'idle');
  return { stage, agency, session, worker };
}

const effects = (state: SessionState) =>
  state.calls.map(({ id, status, compensatedBy }) => [
    id,
    status.kind,
    ...(compensatedBy === undefined ? [] : [compensatedBy]),
  ]);

test('cancel with undo asks a person for each compensation, and runs them in reverse order', async () => {
  const { stage, agency, session } = await booked();
  const { steps } = await session.undoPlan();
  expect(steps.map(({ callId, by, reason }) => [callId, by, reason])).toEqual([
    ['call_3_0', 'tool', undefined],
    ['call_2_0', 'person', 'the tool has no compensate'],
    ['call_1_0', 'tool', undefined],
  ]);
  await session.cancel({ undo: true, by: 'ada' });
  const { pending } = await untilPhase(session, 'approval');
  expect(pending).toMatchObject([
    {
      callId: 'undo_call_3_0',
      tool: 'book',
      compensates: 'call_3_0',
      args: { input: FLIGHT.args, output: { reference: 'ref flight' } },
    },
    { callId: 'undo_call_1_0', compensates: 'call_1_0' },
  ]);
  await expect(decide(session, 'undo_call_1_0', { decision: 'edit', args: {} })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  });
  // Approved out of order, they run in order.
  await decide(session, 'undo_call_1_0', { decision: 'approve' });
  await decide(session, 'undo_call_3_0', { decision: 'approve' });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect(agency.log.slice(3)).toEqual(['cancel flight ref flight', 'cancel hotel ref hotel']);
  const state = await session.snapshot();
  expect(effects(state)).toEqual([
    ['call_1_0', 'completed', 'undo_call_1_0'],
    ['call_2_0', 'completed'],
    ['call_3_0', 'completed', 'undo_call_3_0'],
    ['undo_call_3_0', 'completed'],
    ['undo_call_1_0', 'completed'],
  ]);
  expect(state.notices.map(({ message }) => message)).toContain(
    'letter call_2_0 is not undone: the tool has no compensate',
  );
  await expectSound(stage, session);
});

test('the digest of the list approves all of its compensations at once, and no others', async () => {
  const { agency, session } = await booked();
  const { digest } = await session.undoPlan();
  await session.cancel({ undo: { digest }, by: 'ada' });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect(agency.booked.size).toBe(0);
  const { calls } = await session.snapshot();
  expect(calls.at(-1)?.decision).toMatchObject({ decision: 'approve', by: 'ada' });

  const other = await booked();
  await other.session.cancel({ undo: { digest: 'another' } });
  expect((await untilPhase(other.session, 'approval')).pending).toHaveLength(2);
});

test('a compensation that fails waits for a person, who may try it again, and one that is lost is verified', async () => {
  const { stage, agency, session } = await booked();
  agency.faults.push('refused', 'lost');
  const { digest } = await session.undoPlan();
  await session.cancel({ undo: { digest } });
  const [stuck] = (await untilPhase(session, 'unknown_effect')).pending;
  expect(stuck).toMatchObject({ callId: 'undo_call_3_0', status: { kind: 'stuck', failed: true } });
  await session.resume();
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect(agency.booked.size).toBe(0);
  const [, , , flight] = (await session.snapshot()).calls;
  expect(flight?.dispatches.map(({ outcome }) => outcome)).toEqual(['absent', 'landed']);
  await expectSound(stage, session);
});

test('an undo can be given up: what has begun is settled, the rest stays', async () => {
  const { stage, agency, session } = await booked();
  await session.cancel({ undo: true });
  await untilPhase(session, 'approval');
  agency.faults.push('refused');
  await decide(session, 'undo_call_3_0', { decision: 'approve' });
  await until(session, ({ pending }) => pending.some(({ status }) => status.kind === 'stuck'));
  await session.cancel({ undo: false });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect([...agency.booked.values()]).toEqual(['hotel', 'flight']);
  await expectSound(stage, session);
});

test('a person can say that a failed compensation was done by hand', async () => {
  const { agency, session } = await booked();
  agency.faults.push('refused');
  await session.cancel({ undo: { digest: (await session.undoPlan()).digest } });
  await until(session, ({ pending }) => pending.some(({ status }) => status.kind === 'stuck'));
  await resolve(session, 'undo_call_3_0', { outcome: 'landed', output: 'by phone' });
  await session.result();
  const { calls } = await session.snapshot();
  expect(calls.find(({ id }) => id === 'call_3_0')?.compensatedBy).toBe('undo_call_3_0');
});

test('after an undo, a rewound session runs an equal call again with another key, and replays what was not undone', async () => {
  const { stage, agency, session } = await booked();
  await session.cancel({ undo: { digest: (await session.undoPlan()).digest } });
  await session.result();
  const saver = new TemporalSaver(stage.client);
  const all = await saver.list(session.id, { limit: 100 });
  const first = all.findLast(({ metadata }) => metadata['phase'] === 'thinking');
  const last = all[0];
  if (first === undefined || last === undefined) throw new Error('no checkpoints');
  const since = await effectsSince(stage.client, first, last);
  expect(since.map(({ callId, again }) => [callId, again])).toEqual([
    ['call_1_0', 'undone'],
    ['call_2_0', 'answered'],
    ['call_3_0', 'undone'],
  ]);
  const before = agency.log.length;
  const from = { sessionId: session.id, checkpointId: first.id };
  const taken = await stage.sessions.rewind(from, { by: 'ada', reason: 'again', message: 'again' });
  await until(taken, ({ phase, turn }) => phase === 'idle' && turn === 4);
  expect(agency.log.slice(before)).toEqual(['book hotel', 'book flight']);
  expect([...agency.booked.values()]).toEqual(['hotel', 'flight']);
  const keys = (state: JsonObject) =>
    (state as unknown as SessionState).calls
      .filter(({ name, compensates }) => name === 'book' && compensates === undefined)
      .map(({ idempotencyKey }) => idempotencyKey);
  const now = await taken.snapshot();
  expect(new Set([...keys(last.state), ...keys(now as unknown as JsonObject)]).size).toBe(4);
  await expectSound(stage, taken);
});

test('a rewind with undo undoes what happened since the checkpoint, before it goes on', async () => {
  const { stage, agency, session } = await booked();
  const saver = new TemporalSaver(stage.client);
  const all = await saver.list(session.id, { limit: 100 });
  // The hotel is booked, and the letter is not asked for yet.
  const then = all.find(({ metadata, state }) => {
    const { batch } = state as unknown as SessionState;
    return metadata['turn'] === 1 && batch.length === 0;
  });
  const now = all[0];
  if (then === undefined || now === undefined) throw new Error('no checkpoints');
  const plan = await undoPlanSince(stage.client, then, now);
  expect(plan.steps.map(({ callId, by }) => [callId, by])).toEqual([
    ['call_3_0', 'tool'],
    ['call_2_0', 'person'],
  ]);
  const before = agency.log.length;
  const from = { sessionId: session.id, checkpointId: then.id };
  const undo = { digest: plan.digest };
  const taken = await stage.sessions.rewind(from, { by: 'ada', reason: 'another flight', undo });
  await until(taken, ({ phase, turn }) => phase === 'idle' && turn === 4);
  // The letter stays and is not written again. The flight is booked again, once it was cancelled.
  expect(agency.log.slice(before)).toEqual(['cancel flight ref flight', 'book flight']);
  expect([...agency.booked.values()]).toEqual(['hotel', 'flight']);
  const state = await taken.snapshot();
  expect(state.carried.map(({ callId, undone }) => [callId, undone])).toEqual(
    expect.arrayContaining([['call_3_0', true]]),
  );
  expect(state.transcript.map(({ role }) => role).join()).not.toContain('tool,tool');
  await expectSound(stage, taken);

  // A person approves each, and gives this one up: the effect stays, and answers.
  const last = await saver.get(session.id);
  if (last === null) throw new Error('no checkpoint');
  const again = await stage.sessions.rewind(from, {
    by: 'ada',
    reason: 'again',
    undo: true,
    message: 'once more',
  });
  const { pending } = await untilPhase(again, 'approval');
  expect(pending).toMatchObject([{ compensates: 'call_3_0', tool: 'book' }]);
  await decide(again, pending[0]?.callId ?? '', { decision: 'reject' });
  await until(again, ({ phase, turn }) => phase === 'idle' && turn === 4);
  expect(agency.log.slice(before)).toEqual(['cancel flight ref flight', 'book flight']);
  await expectSound(stage, again);
});

test('cancel with undo reaches the effects of earlier runs, after those of the present one', async () => {
  const { stage, agency, session } = await booked({ runTurns: 1 });
  expect((await session.snapshot()).past?.calls).toBe(3);
  const { digest, steps } = await session.undoPlan();
  expect(steps.map(({ callId, by }) => [callId, by])).toEqual([
    ['call_3_0', 'tool'],
    ['call_2_0', 'person'],
    ['call_1_0', 'tool'],
  ]);
  const saver = new TemporalSaver(stage.client);
  const then = (await saver.list(session.id, { limit: 100 })).find(
    ({ metadata, state }) => metadata['turn'] === 2 && (state as unknown as SessionState).batch.length === 0,
  );
  await session.cancel({ undo: { digest }, by: 'ada' });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect(agency.log.slice(3)).toEqual(['cancel flight ref flight', 'cancel hotel ref hotel']);
  const state = await expectFoldEqualsLive(stage.client, session);
  expect(state.calls.map(({ id, decision }) => [id, decision?.by])).toEqual([
    ['undo_call_3_0', 'ada'],
    ['undo_call_1_0', 'ada'],
  ]);
  expect(state.notices.map(({ message }) => message)).toContain(
    'letter call_2_0 is not undone: the tool has no compensate',
  );

  // The hotel was booked before this checkpoint, and cancelled since: an equal call books it again, under another key.
  const last = await saver.get(session.id);
  if (then === undefined || last === null) throw new Error('no checkpoint');
  const since = await effectsSince(stage.client, then, last);
  expect(since.map(({ callId, again }) => `${callId} ${again}`).sort()).toEqual([
    'call_1_0 undone',
    'call_3_0 undone',
  ]);
  const from = { sessionId: session.id, checkpointId: then.id };
  const taken = await stage.sessions.rewind(from, { by: 'ada', reason: 'again' });
  await until(taken, ({ phase, turn }) => phase === 'idle' && turn > 2);
  expect([...agency.booked.values()]).toEqual(['flight']);
  expect((await taken.undoPlan()).steps.map(({ callId }) => callId)).toEqual(['call_3_0', 'call_2_0']);
});

test('without an approved list, a person approves the undo of each effect of earlier runs', async () => {
  const { stage, agency, session } = await booked({ runTurns: 1 });
  await session.cancel({ undo: { digest: `${(await session.undoPlan()).digest.split('.')[0]}.another` } });
  const { pending } = await untilPhase(session, 'approval');
  expect(pending.map(({ callId }) => callId)).toEqual(['undo_call_3_0', 'undo_call_1_0']);
  for (const { callId } of pending) await decide(session, callId, { decision: 'approve' });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect(agency.booked.size).toBe(0);
  await expectFoldEqualsLive(stage.client, session);
});

test('many effects of earlier runs are undone in portions, and each once', async () => {
  const count = 60;
  const stage = await openStage(({ toolResults }) =>
    toolResults.length > 0
      ? { text: 'done' }
      : { toolCalls: [...Array(count).keys()].map((n) => ({ name: 'book', args: { what: `room ${n}` } })) },
  );
  const agency = new Agency();
  await stage.startWorker([agency.agent(stage, { runTurns: 1 })]);
  const session = await stage.sessions.start('travel', { id: stage.id(), message: 'a hotel' });
  await untilPhase(session, 'idle');
  const { digest, steps } = await session.undoPlan();
  expect(steps).toHaveLength(count);
  await session.cancel({ undo: { digest } });
  await session.result();
  expect(agency.log.slice(count)).toEqual(
    [...Array(count).keys()].reverse().map((n) => `cancel room ${n} ref room ${n}`),
  );
});

test('when the effects of earlier runs cannot be read, the session waits, and a person gives the undo up', async () => {
  const { stage, agency, session } = await booked({ runTurns: 1 });
  const { digest } = await session.undoPlan();
  await deletePieces(stage.client, session.id, (await session.snapshot()).past?.newest);
  await session.cancel({ undo: { digest } });
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({
    reason: 'history_unreadable',
    message: expect.stringMatching(/^the effects of earlier runs cannot be read, and are not undone: /),
    next: { action: 'resume' },
  });
  await session.resume();
  await untilPhase(session, 'waiting');
  await session.cancel({ undo: false });
  expect(await session.result()).toMatchObject({ status: 'cancelled' });
  expect(agency.booked.size).toBe(2);
});

test('the undo of a fork leaves what its origin did to people', async () => {
  const { stage, agency, session } = await booked();
  const last = await new TemporalSaver(stage.client).get(session.id);
  const from = { sessionId: session.id, checkpointId: last?.id ?? '' };
  const fork = await stage.sessions.fork(from, { id: stage.id('fork'), by: 'ada', reason: 'try' });
  await untilPhase(fork, 'idle');
  const { digest, steps } = await fork.undoPlan();
  expect(steps).toHaveLength(3);
  for (const step of steps)
    expect(step).toMatchObject({
      by: 'person',
      reason: 'the session that this one is a fork of has done it',
    });
  await fork.cancel({ undo: { digest } });
  await fork.result();
  expect([...agency.booked.values()]).toEqual(['hotel', 'flight']);
});

test('the effects of a session that has ended are undone in a new run, which does not ask its model', async () => {
  const { stage, agency, session } = await booked({ runTurns: 2 });
  await session.cancel();
  await session.result();
  await expect(session.cancel({ undo: true })).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
  const { turn } = await session.state();
  const { digest, steps } = await session.undoPlan();
  expect(steps.map(({ callId, by }) => [callId, by])).toEqual([
    ['call_3_0', 'tool'],
    ['call_2_0', 'person'],
    ['call_1_0', 'tool'],
  ]);
  // As a program without types may call it.
  await expect(stage.sessions.undo(session.id, {} as { undo: true })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    details: { field: 'undo' },
  });
  const undone = await stage.sessions.undo(session.id, { undo: { digest }, by: 'ada', reason: 'a mistake' });
  expect(await undone.result()).toMatchObject({ status: 'cancelled' });
  expect(agency.log.slice(3)).toEqual(['cancel flight ref flight', 'cancel hotel ref hotel']);
  const state = await expectFoldEqualsLive(stage.client, undone);
  expect(state).toMatchObject({ turn, cancelling: { by: 'ada', reason: 'a mistake' } });
  await expectSound(stage, undone);

  // Once more: nothing is left for a tool.
  expect((await undone.undoPlan()).steps.map(({ by }) => by)).toEqual(['person']);
  const again = await stage.sessions.undo(session.id, { undo: true });
  expect(await again.result()).toMatchObject({ status: 'cancelled' });
  expect(agency.log).toHaveLength(5);
});

test('a cancellation does not overtake the undo of a session that has ended', async () => {
  const { stage, agency, session, worker } = await booked();
  await session.cancel();
  await session.result();
  await worker.stop();
  const undone = await stage.sessions.undo(session.id, { undo: true });
  await undone.cancel({ by: 'bob' });
  await stage.startWorker([agency.agent(stage)]);
  const { pending } = await untilPhase(undone, 'approval');
  expect(pending.map(({ callId }) => callId)).toEqual(['undo_call_3_0', 'undo_call_1_0']);
  for (const { callId } of pending) await decide(undone, callId, { decision: 'approve' });
  expect(await undone.result()).toMatchObject({ status: 'cancelled' });
  expect(agency.booked.size).toBe(0);
});
