/** A session over many runs is shown as one: its checkpoints, their records and differences, over HTTP, in the library. */
import { expect, onTestFinished, test } from 'vitest';
import { type Checkpoint, diff, type SessionState, TemporalSaver, wholeCheckpoint } from '../../src/index.ts';
import {
  pauseEvents,
  readSnapshot,
  runCheckpoint,
  runPhases,
  sessionCheckpoint,
} from '../../src/saver/records/index.ts';
import { deleteRun, findExecution } from '../../src/temporal/executions.ts';
import { openApi } from '../http/support/api.ts';
import { rejection } from '../support/rejection.ts';
import { until, untilPhase } from '../support/stage.ts';
import { openTeller, runsOf, say, type Teller } from './support/teller.ts';

const TEXTS = [...Array(6).keys()].map((n) => `payEach ${n}`);

/** A session of twelve turns in several runs that was paused once, and its latest checkpoint. */
async function openRolled(): Promise<Teller & { saver: TemporalSaver; latest: Checkpoint }> {
  const teller = await openTeller();
  const { stage, session } = teller;
  await session.pause({ by: 'ada' });
  await untilPhase(session, 'paused');
  await session.resume({ by: 'ada' });
  await say(session, ...TEXTS);
  const saver = new TemporalSaver(stage.client);
  for (;;) {
    const latest = await saver.get(session.id);
    if (latest === null) return expect.fail('it has no checkpoint');
    // It may go on in a new run yet.
    const { past, turn, continuing } = stateOf(latest);
    if (continuing === undefined && turn - (past?.turn ?? 0) < 3) return { ...teller, saver, latest };
  }
}

function stateOf({ state }: Checkpoint): SessionState {
  return state as unknown as SessionState;
}

test('a checkpoint is read with what is in its run, and made whole on request', async () => {
  const { stage, session, latest } = await openRolled();
  const part = stateOf(latest);
  expect(part.past?.messages).toBeGreaterThan(10);
  expect(part.transcript.length).toBeLessThan(10);

  const whole = await wholeCheckpoint(stage.client, latest);
  const state = stateOf(whole);
  expect(whole).toEqual({ ...latest, state: expect.anything() });
  expect(state).not.toHaveProperty('past');
  expect(state.transcript).toEqual((await session.transcript({ limit: 1_000 })).items);
  expect(state.transcript).toHaveLength(24);
  expect(state.position).toEqual(part.position);
  expect(state.calls).toEqual((await session.calls({ limit: 1_000 })).items);
  // What was read before is unchanged.
  expect(stateOf(latest)).toEqual(part);
  const other = { ...latest, metadata: {} };
  expect(await wholeCheckpoint(stage.client, other)).toBe(other);
});

test('the records of a run and of a session hold all runs, and refuse a checkpoint that holds one', async () => {
  const { stage, latest, saver, session } = await openRolled();
  const whole = await wholeCheckpoint(stage.client, latest);
  const snapshot = readSnapshot(runCheckpoint(whole).payload);
  expect(snapshot.messages).toHaveLength(24);
  expect(snapshot.tool_executions.map(({ args }) => args)).toEqual(TEXTS.map((bill) => ({ bill })));
  expect(sessionCheckpoint(whole).activeAgents[0]?.conversationTail).toHaveLength(24);
  expect(pauseEvents(whole).map(({ type }) => type)).toEqual(['session_paused', 'session_resumed']);
  // A short tail is in the run.
  expect(sessionCheckpoint(latest, { transcriptReplayDepth: 1 }).activeAgents[0]?.conversationTail).toEqual(
    sessionCheckpoint(whole, { transcriptReplayDepth: 1 }).activeAgents[0]?.conversationTail,
  );
  for (const record of [runCheckpoint, sessionCheckpoint, pauseEvents]) {
    expect(() => record(latest)).toThrow(
      expect.objectContaining({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(
          /lacks the \d+ messages of its earlier runs\. Pass the result of wholeCheckpoint/,
        ),
      }),
    );
  }
  // The phases are told once, over all runs.
  const oldest = (await saver.list(session.id, { limit: 1_000 })).reverse();
  const phases = oldest.flatMap((one, i) => runPhases(one, oldest[i - 1] ?? null));
  const counts = phases
    .filter(({ phase }) => phase === 'pre_llm')
    .map(({ payload }) => payload['message_count']);
  expect(counts).toEqual(TEXTS.flatMap((_, n) => [4 * n + 1, 4 * n + 3]));
  expect(phases.filter(({ phase }) => phase === 'run_started')).toHaveLength(1);
});

test('the difference between checkpoints of two runs is what was said and done in between', async () => {
  const { stage, saver, session, latest } = await openRolled();
  const list = await saver.list(session.id, { limit: 1_000 });
  const early = list.find(({ state }) => state['past'] === undefined && state['turn'] === 2);
  if (early === undefined) return expect.fail('no checkpoint of the first run');
  const [a, b] = await Promise.all([early, latest].map((one) => wholeCheckpoint(stage.client, one)));
  if (a === undefined || b === undefined) return expect.fail('a checkpoint is gone');
  const changes = diff(a, b).filter(({ path }) => /^\/(transcript|calls)/.test(path));
  expect(changes.every(({ op }) => op === 'add')).toBe(true);
  expect(changes.filter(({ path }) => path.startsWith('/transcript'))).toHaveLength(
    24 - stateOf(a).transcript.length,
  );
});

test('a checkpoint is made whole over HTTP', async () => {
  const { stage, saver, session, latest } = await openRolled();
  const { call, close } = await openApi(saver, { taskQueue: stage.taskQueue });
  onTestFinished(close);
  const whole = await wholeCheckpoint(stage.client, latest);
  const id = encodeURIComponent(latest.id);
  const route = `GET /threads/${session.id}`;
  expect((await call(`${route}/latest`)).body).toEqual(latest);
  expect((await call(`${route}/latest?whole=true`)).body).toEqual(whole);
  expect((await call(`${route}/checkpoints/${id}?whole=true`)).body).toEqual(whole);
});

test('what a deleted session has said is gone, and this is said', async () => {
  const { stage, saver, session, latest } = await openRolled();
  await saver.delete(session.id, { end: true });
  expect(await rejection(wholeCheckpoint(stage.client, latest))).toMatchObject({
    code: 'CHECKPOINT_CORRUPTION',
  });
});

test('a session goes on in a new run without being told to, and stays in one when its agent says so', async () => {
  const { session, stage } = await openTeller({ runTurns: null });
  const texts = [...Array(55).keys()].map((n) => `say ${n}`);
  await say(session, ...texts);
  expect((await runsOf(stage, session)).length).toBe(2);
  expect((await session.snapshot()).manifest?.runTurns).toBe(50);

  const one = await openTeller({ runTurns: false });
  await say(one.session, ...texts);
  expect((await runsOf(one.stage, one.session)).length).toBe(1);
  expect((await one.session.snapshot()).manifest).not.toHaveProperty('runTurns');
});

test('a checkpoint is made whole, and forked, when its piece was merged and removed', async () => {
  const { stage, session } = await openTeller({ runTurns: 1 });
  // So many runs that the first pieces are merged.
  const texts = [...Array(11).keys()].map((n) => `say ${n}`);
  await say(session, ...texts);
  const saver = new TemporalSaver(stage.client);
  const list = await saver.list(session.id, { limit: 1_000 });
  const early = list.find((one) => stateOf(one).past?.turn === 4);
  if (early === undefined) return expect.fail('no checkpoint of the fifth run');
  const whole = await wholeCheckpoint(stage.client, early);
  const { newest } = stateOf(early).past ?? {};
  const piece = stage.client.workflow.getHandle(`perdure-content/${newest?.key}/0`);
  expect((await piece.describe()).status.name).toBe('TERMINATED');
  await deleteRun(stage.client, piece.workflowId, (await piece.describe()).runId);
  await expect.poll(() => findExecution(stage.client, piece.workflowId)).toBeNull();

  expect(await wholeCheckpoint(stage.client, early)).toEqual(whole);
  const forked = await stage.sessions.fork(
    { sessionId: session.id, checkpointId: early.id },
    { id: stage.id('fork'), by: 'me', reason: 'try', message: 'say more' },
  );
  await until(forked, ({ phase, messages }) => phase === 'idle' && messages > stateOf(early).position.count);
  const { items } = await forked.transcript({ limit: 1_000 });
  expect(items.slice(0, 8)).toEqual(stateOf(whole).transcript.slice(0, 8));
});
