/** Workers with versions: where sessions run during a deploy, and how they are moved. */
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test } from 'vitest';
import {
  type DeploymentOptions,
  defineAgent,
  listVersions,
  moveSession,
  type Session,
  setCurrentVersion,
  type WorkerVersion,
} from '../../src/index.ts';
import { whyUnanswered } from '../../src/temporal/unanswered.ts';
import { overrideVersion, runsOn, versionsOf } from '../../src/temporal/versions.ts';
import { createHarness } from '../../src/testing/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type RunningWorker, type Stage, until, untilPhase } from '../support/stage.ts';

interface Deploy {
  stage: Stage;
  session: Session;
  /** Of the version on which the session has answered its first message. */
  worker: RunningWorker;
  one: WorkerVersion;
  two: WorkerVersion;
  /** Starts a worker of a version. */
  start(version: WorkerVersion): Promise<RunningWorker>;
}

/** A session on version `one`, which is current. */
async function deploy(
  behavior: NonNullable<DeploymentOptions['behavior']>,
  runTurns?: number,
): Promise<Deploy> {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const name = stage.id('desk');
  const agent = defineAgent({
    name: 'clerk',
    model: stage.provider('m'),
    instructions: 'Be brief.',
    ...(runTurns === undefined ? {} : { runTurns }),
  });
  const start = ({ buildId }: WorkerVersion): Promise<RunningWorker> =>
    stage.startWorker([agent], { deployment: { name, buildId, behavior } });
  const one = { deployment: name, buildId: 'one' };
  const worker = await start(one);
  await makeCurrent(stage.client, one);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'hello' });
  await untilPhase(session, 'idle');
  return { stage, session, worker, one, two: { deployment: name, buildId: 'two' }, start };
}

/** The server knows a version when its first worker has polled. */
async function makeCurrent(client: Client, version: WorkerVersion): Promise<void> {
  await expect.poll(() => setCurrentVersion(client, version).then(() => true, String)).toBe(true);
}

const versionOf = async (client: Client, { id }: Session): Promise<unknown> =>
  (await runsOn(client, id)).version;

async function say(session: Session, text: string): Promise<void> {
  await session.send(text);
  await until(session, ({ phase, lastText }) => phase === 'idle' && lastText === `heard ${text}`);
}

test('a version that no worker has is refused, and a server that is not there is said', async () => {
  const { client } = await openStage(() => ({ text: '' }));
  const version = { deployment: 'nobody', buildId: 'one' };
  expect(await rejection(setCurrentVersion(client, version))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('Start a worker of that version first'),
  });
  const away = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1', connectTimeout: 500 }) });
  const asked = [setCurrentVersion(away, version), listVersions(away)];
  for (const error of await Promise.all(asked.map(rejection)))
    expect(error).toMatchObject({ code: 'SERVER_UNAVAILABLE' });
}, 60_000);

test('a pinned session stays on its version while new ones start on the current one, and goes on with that when it is moved', async () => {
  const { stage, session, worker, one, two, start } = await deploy('PINNED');
  const { client } = stage;
  await start(two);
  await makeCurrent(client, two);
  const other = await stage.sessions.start('clerk', { id: stage.id(), message: 'hello' });
  await untilPhase(other, 'idle');
  expect(await versionOf(client, other)).toEqual(two);
  await say(session, 'still there?');
  expect(await versionOf(client, session)).toEqual(one);
  const seen = async (): Promise<unknown[]> =>
    (await listVersions(client)).versions
      .filter(({ deployment }) => deployment === one.deployment)
      .map(({ buildId, status, sessions, workers }) => [buildId, status, sessions, workers.length]);
  await expect.poll(seen).toEqual([
    ['two', 'current', 1, 1],
    ['one', 'draining', 1, 1],
  ]);

  expect(await moveSession(client, session.id, two)).toEqual({
    sessionId: session.id,
    from: one,
    to: two,
    moved: true,
  });
  await worker.stop();
  await say(session, 'and now?');
  expect(await runsOn(client, session.id)).toMatchObject({ version: two, pinned: true, override: null });
  expect(await moveSession(client, session.id, two)).toMatchObject({ moved: false });
  await expect.poll(async () => (await seen())[0]).toEqual(['two', 'current', 2, 1]);
  await expectSound(stage, session);
}, 120_000);

test('a session that is not pinned goes on with the current version by itself, also when idle after a move', async () => {
  const { stage, session, worker, one, two, start } = await deploy('AUTO_UPGRADE');
  const { client } = stage;
  await start(two);
  // The server knows a version when its first worker has polled.
  await expect.poll(async () => (await versionsOf(client, two.deployment)).length).toBe(2);
  const early = await rejection(moveSession(client, session.id, two));
  expect(early).toMatchObject({ code: 'CONFLICT', details: { current: 'one' } });
  await makeCurrent(client, two);
  expect(await moveSession(client, session.id, two)).toMatchObject({ from: one, moved: true });
  await worker.stop();
  await say(session, 'and now?');
  // Back again.
  await start(one);
  await makeCurrent(client, one);
  await say(session, 'and then?');
  expect(await versionOf(client, session)).toEqual(one);
  await expectSound(stage, session);
}, 120_000);

test.each(['PINNED', 'AUTO_UPGRADE'] as const)(
  'a session that goes on in new runs during a deploy (%s) is moved, loses nothing and says nothing twice',
  async (behavior) => {
    const { stage, session, worker, one, two, start } = await deploy(behavior, 2);
    const { client } = stage;
    const { runId: first } = await session.state();
    await start(two);
    await makeCurrent(client, two);
    for (const text of ['a', 'b', 'c']) await say(session, text);
    expect((await session.state()).runId).not.toBe(first);
    // A new run has no version before its first task.
    const expected = behavior === 'PINNED' ? one : two;
    await expect.poll(() => versionOf(client, session)).toEqual(expected);
    const texts = ['d', 'e', 'f', 'g', 'h', 'i'];
    const talk = (async () => {
      for (const text of texts) await say(session, text);
    })();
    await Promise.all([talk, moveSession(client, session.id, two)]);
    await worker.stop();
    await say(session, 'last');
    expect(await runsOn(client, session.id)).toMatchObject({ version: two, override: null });
    const { items } = await session.transcript({ limit: 100 });
    const said = items.flatMap(({ role, blocks }) =>
      role === 'user' ? blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : [])) : [],
    );
    expect(said).toEqual(['hello', 'a', 'b', 'c', ...texts, 'last']);
    expect(items).toHaveLength(2 * said.length);
  },
  180_000,
);

test('a move that cannot succeed says why and what to do, and changes nothing', async () => {
  const { stage, session, one, two, start } = await deploy('PINNED');
  const { client } = stage;
  expect(await rejection(moveSession(client, session.id, two))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: `to.buildId: deployment ${one.deployment} has no version two. Its versions: one`,
  });
  const gone = await start(two);
  await makeCurrent(client, two);
  await gone.stop();
  // A poll of a worker that has ended stays in the server's list for a while.
  const elsewhere = stage.id('elsewhere');
  const alone = await stage.sessions.start('clerk', { id: stage.id('alone'), taskQueue: elsewhere });
  expect(await rejection(moveSession(client, alone.id, two))).toMatchObject({
    code: 'NO_WORKER',
    message: `No worker of version two of ${two.deployment} polls task queue ${elsewhere}. Start one, and move session ${alone.id} again`,
  });
  expect(await runsOn(client, alone.id)).toMatchObject({ version: null, override: null });
  expect(await rejection(moveSession(client, 'nobody', two))).toMatchObject({ code: 'SESSION_NOT_FOUND' });
  await session.cancel();
  await session.result();
  expect(await rejection(moveSession(client, session.id, two))).toMatchObject({ code: 'SESSION_CLOSED' });
}, 120_000);

test('a move that was interrupted is finished by the next one', async () => {
  const { stage, session, one, two, start } = await deploy('PINNED');
  const { client } = stage;
  await start(two);
  await makeCurrent(client, two);
  // As far as a program came that was killed then.
  await overrideVersion(client, session.id, two);
  expect(await moveSession(client, session.id, two)).toMatchObject({ from: one, moved: true });
  await overrideVersion(client, session.id, two);
  expect(await moveSession(client, session.id, two)).toMatchObject({ moved: false });
  expect(await runsOn(client, session.id)).toMatchObject({ version: two, override: null });
}, 120_000);

test('a worker that is killed in the middle of a move: the next one of its version takes the session', async () => {
  const name = `desk-${process.pid}-${Date.now()}`;
  const harness = await createHarness({
    module: new URL('../support/versioned-agents.ts', import.meta.url),
    server: inject('temporal'),
    script: () => ({ text: 'Hello.' }),
    env: { DEPLOYMENT: name },
  });
  onTestFinished(() => harness.stop());
  const { client } = harness;
  const [one, two] = ['one', 'two'].map((buildId) => ({ deployment: name, buildId })) as [
    WorkerVersion,
    WorkerVersion,
  ];
  const old = await harness.startWorkerProcess({ env: { BUILD_ID: 'one' } });
  await makeCurrent(client, one);
  const session = await harness.startSession('effects', { message: 'Hi.' });
  await harness.until(session, 'idle');
  const dying = await harness.startWorkerProcess({ env: { BUILD_ID: 'two' }, breakAt: ['task'] });
  await makeCurrent(client, two);
  const moved = moveSession(client, session.id, two, { timeoutMs: 60_000 });
  await dying.reached('task');
  await dying.crash();
  await old.crash();

  await harness.startWorkerProcess({ env: { BUILD_ID: 'two' } });
  expect(await moved).toMatchObject({ from: one, moved: true });
  await session.send('Still there?');
  await harness.until(session, ({ phase, turn }) => phase === 'idle' && turn === 2);
  expect(await runsOn(client, session.id)).toMatchObject({ version: two, pinned: true, override: null });
}, 180_000);

/** Why a session does not answer. A signal gives it a task that waits for a worker. */
async function silence({ client }: Stage, session: Session): Promise<unknown> {
  await session.pause();
  return whyUnanswered(client, { workflowId: session.id, what: 'it', askedMs: Date.now() });
}

test('a session without a worker of its version says which version that is, and what to do', async () => {
  const { stage, session, worker, one, two, start } = await deploy('PINNED');
  const next = await start(two);
  const { deployment } = two;
  await worker.stop();
  const pinned = `it is pinned to version one of ${deployment}, and no worker of it polls task queue ${stage.taskQueue}`;
  const move = 'Start one, or move the session: perdure versions move --help';
  expect(await silence(stage, session)).toMatchObject({ code: 'NO_WORKER', message: `${pinned}. ${move}` });
  // New ones go to the current version, whose worker has ended.
  const fresh = await stage.sessions.start('clerk', { id: stage.id() });
  expect(await silence(stage, fresh)).toMatchObject({
    code: 'NO_WORKER',
    message: expect.stringContaining(`Version one of ${deployment} is current, and no worker of it polls`),
  });
  await next.stop();
  await start(one);
}, 120_000);

test('while no version is current, a session says that the workers wait for that', async () => {
  const stage = await openStage(() => ({ text: 'ok' }));
  const agent = defineAgent({ name: 'clerk', model: stage.provider('m'), instructions: 'Be brief.' });
  await stage.startWorker([agent], { deployment: { name: stage.id('desk'), buildId: 'one' } });
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'hello' });
  await expect
    .poll(() => silence(stage, session))
    .toMatchObject({
      code: 'NO_WORKER',
      message: `The workers of task queue ${stage.taskQueue} have versions (one), and none is current. Make one current: perdure versions set-current <build>`,
    });
}, 60_000);

test('a session that a version cannot continue says so, and goes on when it is moved back', async () => {
  const { stage, session, one, two } = await deploy('PINNED');
  const { client, taskQueue } = stage;
  const agent = defineAgent({ name: 'clerk', model: stage.provider('m'), instructions: 'Be brief.' });
  const deployment = { name: two.deployment, buildId: 'two', behavior: 'PINNED' as const };
  const workflowsPath = fileURLToPath(new URL('../support/failing-workflow.ts', import.meta.url));
  await stage.startWorker([agent], { deployment, workflowsPath });
  await makeCurrent(client, two);
  expect(await rejection(moveSession(client, session.id, two, { timeoutMs: 5_000 }))).toMatchObject({
    code: 'TASK_FAILING',
    message: expect.stringMatching(/^session \S+ did not move to two of \S+ in time: .*it cannot go on/),
  });
  expect(await runsOn(client, session.id)).toMatchObject({
    version: one,
    override: { version: two },
    taskQueue,
  });
  expect(await moveSession(client, session.id, one)).toMatchObject({ moved: false });
  await say(session, 'still there?');
  expect(await runsOn(client, session.id)).toMatchObject({ version: one, override: null });
  await expectSound(stage, session);
}, 120_000);
