/** Search attributes that the server loses, or that get another type, while sessions run. */
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { NativeConnection, Runtime, type WorkerPlugin } from '@temporalio/worker';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { defineAgent, type Session, Sessions } from '../../src/index.ts';
import { ensureSearchAttributes, SESSION_SEARCH_ATTRIBUTES } from '../../src/server/index.ts';
import { KnownAttributes } from '../../src/worker/search-attributes.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const INT = 3;
const KEYWORD = 2;
const DAY_MS = 86_400_000;

interface Registry extends Stage {
  add(name: string, type: number): Promise<void>;
  remove(...names: string[]): Promise<void>;
  /** The attributes that the server shows of a session. */
  shown(session: Session): Promise<Record<string, unknown>>;
}

/** A stage in a namespace of its own, for the attributes are the namespace's. */
async function openRegistry(plugins: WorkerPlugin[] = [], runTurns?: number): Promise<Registry> {
  const stage = await openStage(() => ({ text: 'Good morning.' }));
  const namespace = `attributes-${stage.taskQueue}`;
  const connection = await Connection.connect({ address: inject('temporal').address });
  onTestFinished(() => connection.close());
  const { operatorService, workflowService } = connection;
  await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs(DAY_MS) });
  const client = new Client({ connection, namespace });
  await expect
    .poll(() =>
      ensureSearchAttributes(connection, namespace, SESSION_SEARCH_ATTRIBUTES).then(
        () => 'registered',
        String,
      ),
    )
    .toBe('registered');
  const agent = defineAgent({
    name: 'polite',
    model: stage.provider('any'),
    instructions: 'Greet.',
    ...(runTurns === undefined ? {} : { runTurns }),
  });
  await stage.startWorker([agent], { namespace, plugins });
  return {
    ...stage,
    client,
    sessions: new Sessions(client, { taskQueue: stage.taskQueue }),
    add: async (name, type) => {
      await operatorService.addSearchAttributes({ namespace, searchAttributes: { [name]: type } });
    },
    remove: async (...searchAttributes) => {
      await operatorService.removeSearchAttributes({ namespace, searchAttributes });
    },
    shown: async ({ id }) => {
      const { typedSearchAttributes } = await client.workflow.getHandle(id).describe();
      return Object.fromEntries(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]));
    },
  };
}

async function idleSession({ sessions, id }: Registry): Promise<Session> {
  const session = await sessions.start('polite', { id: id(), message: 'Hello?' });
  await untilPhase(session, 'idle');
  return session;
}

test('a search attribute that is removed stops no session, and is written again when it is back', async () => {
  const registry = await openRegistry();
  const session = await idleSession(registry);
  await registry.remove('PerdureStatus', 'PerdureAgent');
  await session.pause();
  const { notices } = await untilPhase(session, 'paused');
  expect(notices).toMatchObject([
    { kind: 'search_attributes', message: expect.stringContaining('PerdureStatus') },
  ]);
  await session.resume();
  await session.send('And now?');
  await expect.poll(async () => (await session.state()).turn).toBe(2);

  await registry.add('PerdureStatus', KEYWORD);
  await registry.add('PerdureAgent', KEYWORD);
  await expect
    .poll(
      async () => {
        await session.send('Are you listed?');
        await untilPhase(session, 'idle');
        return registry.shown(session);
      },
      { timeout: 60_000 },
    )
    .toMatchObject({ PerdureStatus: 'active', PerdureAgent: 'polite' });
  await expectSound(registry, session);
});

test('a session goes on in a new run when the server has lost its search attributes', async () => {
  const registry = await openRegistry([], 2);
  const session = await idleSession(registry);
  const { runId } = await session.state();
  await registry.remove('PerdureStatus', 'PerdureAgent');
  for (const turn of [2, 3, 4, 5]) {
    await session.send('And now?');
    await expect.poll(async () => (await session.state()).turn, { timeout: 60_000 }).toBe(turn);
  }
  expect((await untilPhase(session, 'idle')).runId).not.toBe(runId);
  expect((await session.snapshot()).searchAttributes).not.toContain('PerdureStatus');
});

test('a search attribute that gets another type stops neither a running session nor a new one', async () => {
  const registry = await openRegistry();
  const session = await idleSession(registry);
  await registry.remove('PerdureStatus');
  await registry.add('PerdureStatus', INT);
  await session.pause();
  await untilPhase(session, 'paused');
  const next = await idleSession(registry);
  expect(await registry.shown(next)).toMatchObject({ PerdureAgent: 'polite' });
  await expectSound(registry, session);
  await expectSound(registry, next);
});

test('a worker to which the server does not list the search attributes says so once', async () => {
  const connection = await NativeConnection.connect({ address: inject('temporal').address });
  onTestFinished(() => connection.close());
  const warn = vi.spyOn(Runtime.instance().logger, 'warn');
  onTestFinished(() => warn.mockRestore());
  // The server refuses a namespace that it does not have.
  const attributes = new KnownAttributes(connection, 'nowhere', undefined);
  expect(await attributes.now()).toEqual([]);
  expect(await attributes.now(0)).toEqual([]);
  expect(warn.mock.calls).toEqual([
    [expect.stringMatching(/^search attributes: those of namespace nowhere cannot be listed: .*nowhere/)],
  ]);
});

test('a task that fails by a search attribute names it and the command to type', async () => {
  // A worker of an older version tells sessions nothing.
  const silent: WorkerPlugin = {
    name: 'silent',
    runWorker: (worker, next) => {
      Object.assign(worker.options.sinks?.['perdure'] ?? {}, { writes: { fn: () => undefined } });
      return next(worker);
    },
  };
  const registry = await openRegistry([silent]);
  const session = await idleSession(registry);
  await registry.remove('PerdureStatus');
  await session.pause();
  await expect
    .poll(() => session.setBudget({ limits: { turns: 9 } }).then(String, String), { timeout: 60_000 })
    .toMatch(/fails at attempt .*PerdureStatus.*perdure setup/);
  await registry.add('PerdureStatus', KEYWORD);
  await untilPhase(session, 'paused');
});
