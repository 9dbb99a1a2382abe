/** The latest checkpoint of a running session is asked of the session, and is the one that its history folds to. */
import { Client, Connection, type ConnectionOptions } from '@temporalio/client';
import fc from 'fast-check';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { canonicalJson, type JsonObject } from '../../src/contract/json.ts';
import { LIMIT, type Session, TemporalSaver } from '../../src/index.ts';
import { askSession, type LiveTask } from '../../src/saver/ask-session.ts';
import { findExecution } from '../../src/saver/wire.ts';
import { act, action, racer, script, settle } from '../session/support/racing.ts';
import { expectSound } from '../session/support/sound.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { idle, LOOK_UP, openSessionStage } from './support/session-stage.ts';

const SEED = Number(process.env['PERDURE_SEED'] ?? 20_251);
const RUNS = Number(process.env['PERDURE_RUNS'] ?? 6);
vi.setConfig({ testTimeout: 300_000 });

const canonical = (value: unknown): string => canonicalJson(value as JsonObject);

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];

/** Asks a session, however it is. */
async function asked(client: Client, session: Session): Promise<LiveTask | null> {
  const execution = await findExecution(client, session.id);
  if (execution === null) throw new Error(`${session.id} is gone`);
  return askSession(client, execution);
}

/** A client of its own that counts what it asks of the server, by the name of the call. */
async function counting(): Promise<{ client: Client; calls: (name: string) => number }> {
  const { address, namespace } = inject('temporal');
  const seen = new Map<string, number>();
  const connection = await Connection.connect({
    address,
    interceptors: [
      (options, next) => {
        const name = options.method_definition.path.split('/').at(-1) ?? '';
        seen.set(name, (seen.get(name) ?? 0) + 1);
        return next(options) as ReturnType<Interceptor>;
      },
    ],
  });
  onTestFinished(() => connection.close());
  return { client: new Client({ connection, namespace }), calls: (name) => seen.get(name) ?? 0 };
}

/** Asks a session again and again while some work is done, and says what it has answered. */
async function askedDuring(stage: Stage, session: Session, work: () => Promise<void>): Promise<LiveTask[]> {
  const answers: LiveTask[] = [];
  let busy = true;
  const asking = (async () => {
    while (busy) {
      const answer = await asked(stage.client, session);
      if (answer !== null) answers.push(answer);
    }
  })();
  await work().finally(() => {
    busy = false;
  });
  await asking;
  return answers;
}

/** Holds answers against the fold's checkpoints of the same ids. */
async function expectFolded(stage: Stage, session: Session, answers: readonly LiveTask[]): Promise<void> {
  const saver = new TemporalSaver(stage.client);
  const folded = await saver.list(session.id, { limit: 10_000 });
  const byId = new Map(folded.map((one) => [one.id, one]));
  const run = folded[0]?.id.split(':')[0];
  for (const { task, previous } of answers) {
    const checkpoint = byId.get(`${run}:${task.eventId}`);
    expect({ ...checkpoint, state: canonical(checkpoint?.state) }).toMatchObject({
      created_at: task.at,
      parent_id: previous === null ? null : `${run}:${previous}`,
      state: canonical(task.state),
    });
  }
  // At rest all ways lead to one checkpoint.
  expect(await new TemporalSaver(stage.client).get(session.id)).toEqual(folded[0]);
}

/** Several clients race one session, which is asked meanwhile. @returns how many answers there were */
async function race(stage: Stage, clients: Parameters<typeof act>[2][][]): Promise<number> {
  const session = await stage.sessions.start('racer', { id: stage.id(), message: 'go' });
  const answers = await askedDuring(stage, session, async () => {
    await Promise.all(
      clients.map(async (actions) => {
        for (const next of actions) await act(stage, session, next);
      }),
    );
    await settle(session);
  });
  await expectSound(stage, session);
  await expectFolded(stage, session, answers);
  return answers.length;
}

const schedules = fc.array(fc.array(action, { maxLength: 8 }), { minLength: 1, maxLength: 3 });

test(`a session that is asked while signals race results answers with what its history folds to (seed ${SEED})`, async () => {
  const stage = await openStage(script);
  await stage.startWorker([racer(stage)]);
  let answers = 0;
  await fc.assert(
    fc.asyncProperty(schedules, async (clients) => {
      answers += await race(stage, clients);
    }),
    { seed: SEED, numRuns: RUNS, endOnFailure: true },
  );
  expect(answers).toBeGreaterThan(RUNS * 10);
});

test(`so it does by workers that forget everything after each task (seed ${SEED})`, async () => {
  const stage = await openStage(script);
  const agents = [racer(stage)];
  const forgetful = { maxCachedWorkflows: 0, memoryBytes: 1 };
  await Promise.all([stage.startWorker(agents, forgetful), stage.startWorker(agents, forgetful)]);
  let answers = 0;
  await fc.assert(
    fc.asyncProperty(schedules, async (clients) => {
      answers += await race(stage, clients);
    }),
    { seed: SEED + 1, numRuns: Math.ceil(RUNS / 2), endOnFailure: true },
  );
  expect(answers).toBeGreaterThan(RUNS);
});

test('the session is asked, and its history is read from its end', async () => {
  const stage = await openSessionStage([LOOK_UP, { text: 'Seen.' }]);
  const session = await idle(stage);
  const { client, calls } = await counting();
  const latest = await new TemporalSaver(client).get(session.id);
  expect(calls('QueryWorkflow')).toBe(1);
  expect(calls('GetWorkflowExecutionHistory')).toBe(0);
  expect(latest).toEqual((await stage.saver.list(session.id, { limit: 1 }))[0]);
  expect(canonical(latest?.state)).toBe(canonical(await session.snapshot()));
});

test('a task that brings the session nothing has the same state, and is the latest checkpoint', async () => {
  const stage = await openSessionStage([LOOK_UP, { text: 'Seen.' }]);
  const session = await idle(stage);
  // An update is written with the task that takes it, after its end.
  await session.setBudget({ limits: { turns: 50 } });
  const before = await new TemporalSaver(stage.client).get(session.id);
  const handle = stage.client.workflow.getHandle(session.id);
  for (const name of ['nobody-home', 'nor-here']) {
    const [last] = await stage.saver.list(session.id, { limit: 1 });
    await handle.signal(name, 1);
    await expect
      .poll(async () => (await stage.saver.list(session.id, { limit: 1 }))[0]?.id)
      .not.toBe(last?.id);
  }
  const { client, calls } = await counting();
  const latest = await new TemporalSaver(client).get(session.id);
  expect(calls('QueryWorkflow')).toBe(1);
  expect(calls('GetWorkflowExecutionHistory')).toBe(0);
  expect(latest).toEqual((await stage.saver.list(session.id, { limit: 1 }))[0]);
  expect(latest?.id).not.toBe(before?.id);
  expect(canonical(latest?.state)).toBe(canonical(before?.state));
});

test('of a large state a fold is begun when it is asked for again, and goes on', async () => {
  const stage = await openSessionStage([{ text: 'One.' }, { text: 'Two.' }]);
  const session = await idle(stage, 'x'.repeat(60_000));
  const { client, calls } = await counting();
  const saver = new TemporalSaver(client);
  const first = await saver.get(session.id);
  expect(calls('QueryWorkflow')).toBe(1);
  expect(await saver.get(session.id)).toEqual(first);
  await session.send('Go on.');
  await untilPhase(session, 'idle');
  expect(canonical((await saver.get(session.id))?.state)).toBe(canonical(await session.snapshot()));
  expect(calls('QueryWorkflow')).toBe(1);
});

test('a state that no query can carry is read from the history', async () => {
  const stage = await openSessionStage([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }]);
  const session = await idle(stage, 'x'.repeat(900_000));
  await session.send('y'.repeat(950_000));
  await untilPhase(session, 'idle');
  expect(await rejection(session.snapshot())).toMatchObject({ code: 'TOO_LARGE' });
  expect(await asked(stage.client, session)).toBeNull();
  const latest = await stage.saver.get(session.id);
  expect(canonical(latest?.state).length).toBeGreaterThan(LIMIT.queryResult);
  expect(latest).toEqual((await stage.saver.list(session.id, { limit: 1 }))[0]);
});

test('a session whose worker is gone is read from its history, and one that has closed is not asked', async () => {
  const stage = await openSessionStage([LOOK_UP, { text: 'Seen.' }]);
  const session = await idle(stage);
  const live = canonical(await session.snapshot());
  // Its polls are still known to the server, which so waits for it: only the deadline ends that.
  await stage.worker.stop();
  const { client, calls } = await counting();
  const latest = await new TemporalSaver(client).get(session.id);
  expect(calls('QueryWorkflow')).toBe(1);
  expect(canonical(latest?.state)).toBe(live);
  expect(latest).toEqual((await stage.saver.list(session.id, { limit: 1 }))[0]);

  await stage.client.workflow.getHandle(session.id).terminate('by hand');
  expect(await new TemporalSaver(client).get(session.id)).toEqual(latest);
  expect(calls('QueryWorkflow')).toBe(1);
});

test('a session that no worker has ever seen has no checkpoint', async () => {
  const stage = await openStage(() => ({ text: 'never' }));
  const session = await stage.sessions.start('nobody', { id: stage.id() });
  expect(await new TemporalSaver(stage.client).get(session.id)).toBeNull();
});
