/** A successor on the same host recovers what a dead worker had in flight, without waiting for heartbeats. */
import { chmodSync, existsSync, linkSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Context } from '@temporalio/activity';
import { NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { createWorker, PerdurePlugin, type Session } from '../../src/index.ts';
import { startServer } from '../../src/server/index.ts';
import { type HistoryEvent, readEvents } from '../../src/temporal/index.ts';
import { scriptedAgents } from '../../src/testing/harness/scripted-agents.ts';
import type { ScriptedTurn } from '../../src/testing/index.ts';
import { InFlightJournal, journalDirectory, recoverPredecessors } from '../../src/worker/in-flight.ts';
import { effects } from '../support/effect-agents.ts';
import { foldOf } from '../support/fold.ts';
import { calls, openWorld, PEN, type World } from '../support/world.ts';

const script = [calls('refund'), { text: 'Refunded.' }];

/** A session whose worker was killed when the service had made its refund, and had not answered. */
async function struck(turns: ScriptedTurn[] = script): Promise<{ world: World; session: Session }> {
  const world = await openWorld(turns, { ignoreKeys: true });
  await world.control.arm({ on: 'refunds', when: 'after-write', do: 'hang' });
  const first = await world.startWorkerProcess();
  const session = await world.begin('silent');
  await world.control.held();
  await first.crash();
  return { world, session };
}

test('the successor fails the dead worker`s mutation at once: verified landed, one refund', async () => {
  const { world, session } = await struck();
  await world.startWorkerProcess();

  // With a heartbeat of an hour, nothing but the journal ends the call in the patience of a test.
  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]?.dispatches).toMatchObject([
    { outcome: 'landed', reason: expect.stringContaining('the worker that had this call has died') },
  ]);
  expect(await world.control.refunds()).toMatchObject([{ args: PEN }]);
});

test('what the successor fails goes on at the successor: not first to the queue of the dead', async () => {
  const { world, session } = await struck([calls('order'), ...script]);
  await world.startWorkerProcess();
  await world.until(session, 'idle');

  const events: HistoryEvent[] = [];
  for await (const event of readEvents(world.client, { workflowId: session.id })) events.push(event);
  const failed = events.findIndex((event) => event.activityTaskFailedEventAttributes);
  const next = events.slice(failed).find((event) => event.workflowTaskScheduledEventAttributes);
  expect(next?.workflowTaskScheduledEventAttributes?.taskQueue).toMatchObject({ name: world.taskQueue });
});

test('a worker of another server leaves the journal to the successor', async () => {
  const { world, session } = await struck();
  // The same namespace and task queue, by name.
  const other = await startServer({ inMemory: true });
  onTestFinished(() => other.stop());
  const connection = await NativeConnection.connect({ address: other.address });
  const { taskQueue } = world;
  const stranger = await createWorker({ agents: [], connection, taskQueue });
  await stranger.runUntil(world.startWorkerProcess());
  await connection.close();

  await world.until(session, 'idle');
  await world.check(session);
  expect(await world.control.refunds()).toMatchObject([{ args: PEN }]);
});

test('a successor repeats a dead worker`s model call under a reserve of its own', async () => {
  const world = await openWorld(script);
  const first = await world.startWorkerProcess({ breakAt: ['after model'] });
  const session = await world.begin('silent');
  await first.reached('after model');
  await first.crash();
  await world.startWorkerProcess();

  await world.until(session, 'idle');
  const { notices } = await world.check(session);
  expect(notices).toContainEqual(expect.objectContaining({ kind: 'worker_lost' }));
  expect(await world.control.refunds()).toHaveLength(1);
});

test('a request that a dead worker has sent is charged, also by a successor with another definition', async () => {
  const world = await openWorld(script);
  const first = await world.startWorkerProcess({ breakAt: ['after model'] });
  const session = await world.begin();
  await first.reached('after model');
  const { budget } = await world.until(session, ({ phase }) => phase === 'thinking');
  await first.crash();
  await world.startWorker({ agents: [{ ...effects, instructions: 'Help with refunds, and say why.' }] });

  await world.until(session, 'idle');
  const { notices } = await world.check(session);
  expect(notices.map(({ message }) => message)).toEqual([
    expect.stringContaining('the worker that sent the request was lost; the model is asked again'),
    expect.stringContaining('the definition of effects changed'),
  ]);
  const { spent } = await session.budget();
  expect(budget.reserved.tokens).toBeGreaterThan(0);
  expect(spent.inputTokens).toBeGreaterThanOrEqual(budget.reserved.tokens);
});

test('a frozen worker keeps what it holds: its successor takes nothing from it', async () => {
  const world = await openWorld(script, { ignoreKeys: true });
  const first = await world.startWorkerProcess({ breakAt: ['request'] });
  const session = await world.begin('silent');
  await first.reached('request');
  first.freeze();
  // It has read the journals when it is ready, and the frozen worker's socket is there.
  await world.startWorkerProcess();
  // The frozen worker still has the workflow cached, so the history is asked, not a worker.
  const [call] = (await foldOf(world.client, session)).calls;
  expect(call).toMatchObject({ status: { kind: 'running' }, dispatches: [{ no: 1, outcome: null }] });
  first.wake();
  first.release('request');

  await world.until(session, 'idle');
  const { calls: log } = await world.check(session);
  expect(log[0]?.dispatches).toMatchObject([{ no: 1, outcome: 'returned' }]);
  expect(await world.control.refunds()).toHaveLength(1);
});

test('workers that share one plugin have a journal each: the end of one is nothing to the other', async () => {
  const world = await openWorld(script);
  const connection = await NativeConnection.connect({ address: world.address });
  onTestFinished(() => connection.close());
  const { namespace, taskQueue, model } = world;
  const plugin = new PerdurePlugin({ agents: scriptedAgents([effects], model.url) });
  const create = (queue: string): Promise<Worker> =>
    Worker.create({ connection, namespace, taskQueue: queue, plugins: [plugin] });
  const goes = await create(`${taskQueue}-other`);
  const stays = await create(taskQueue);
  await goes.runUntil(Promise.resolve());
  await stays.runUntil(async () => {
    const session = await world.begin();
    await world.until(session, 'idle');
    const { calls: log } = await world.check(session);
    expect(log[0]?.dispatches).toMatchObject([{ outcome: 'returned' }]);
  });
});

/** A directory of journals for tests of what is kept there. */
function journals(): string {
  const directory = mkdtempSync(join(tmpdir(), 'journal-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** The journal of a worker that was killed with one call, of which the server knows nothing any more. */
async function leaveJournal(directory: string): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(directory, 'bound'), resolve));
  // A second name outlives the first, which goes with the listener, and nobody listens there.
  linkSync(join(directory, 'bound'), join(directory, 'dead.sock'));
  await new Promise((resolve) => server.close(resolve));
  const file = join(directory, 'dead.jsonl');
  writeFileSync(file, `${JSON.stringify({ token: 'AAAA', workflowId: 'w', runId: '' })}\n`);
  return file;
}

test('what the server could not be told is kept for the next successor', async () => {
  const { address, namespace } = inject('temporal');
  const directory = journals();
  const file = await leaveJournal(directory);
  const lost = await NativeConnection.connect({ address });
  await lost.close();
  await expect(recoverPredecessors(lost, namespace, directory)).rejects.toThrow(/closed/);
  expect(existsSync(file)).toBe(true);
  const connection = await NativeConnection.connect({ address });
  onTestFinished(() => connection.close());
  await recoverPredecessors(connection, namespace, directory);
  expect(readdirSync(directory)).toEqual([]);
});

test('a worker whose agents are refused has recovered nothing', async () => {
  const { address, namespace } = inject('temporal');
  const connection = await NativeConnection.connect({ address });
  onTestFinished(() => connection.close());
  const { namespaceInfo } = await connection.workflowService.describeNamespace({ namespace });
  const where = { taskQueue: 'refused', directory: journals() };
  const file = await leaveJournal(await journalDirectory({ namespaceId: namespaceInfo?.id ?? '', ...where }));
  const create = (agents: (typeof effects)[]): Promise<Worker> =>
    createWorker({ agents, connection, namespace, taskQueue: where.taskQueue, journal: where.directory });
  await expect(create([effects, effects])).rejects.toMatchObject({ code: 'INVALID_DEFINITION' });
  expect(existsSync(file)).toBe(true);
  const worker = await create([]);
  expect(existsSync(file)).toBe(false);
  await worker.runUntil(Promise.resolve());
});

test('a run that fails leaves its journal: calls of it may be open', async () => {
  const { address, namespace } = inject('temporal');
  const connection = await NativeConnection.connect({ address });
  onTestFinished(() => connection.close());
  const journal = journals();
  const plugin = new PerdurePlugin({ agents: [], journal });
  const worker = await Worker.create({ connection, namespace, taskQueue: 'failed-run', plugins: [plugin] });
  const kept = (): string[] =>
    readdirSync(journal, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.jsonl'));
  const forced = new Error('the time to end is over');
  await expect(plugin.runWorker(worker, () => Promise.reject(forced))).rejects.toBe(forced);
  expect(kept()).toHaveLength(1);
  await worker.runUntil(Promise.resolve());
  expect(kept()).toEqual([]);
});

test('a directory that others can write to is not used, and that is said', async () => {
  const { address, namespace } = inject('temporal');
  const connection = await NativeConnection.connect({ address });
  onTestFinished(() => connection.close());
  const journal = journals();
  chmodSync(journal, 0o770);
  const warn = vi.spyOn(Runtime.instance().logger, 'warn');
  onTestFinished(() => warn.mockRestore());
  const worker = await createWorker({ agents: [], connection, namespace, taskQueue: 'shared', journal });
  expect(readdirSync(journal)).toEqual([]);
  expect(warn).toHaveBeenCalledWith(expect.stringContaining(`${journal} can be written by other users`));
  await worker.runUntil(Promise.resolve());
});

test('a journal that cannot be opened is done without', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'journal-')), 'a file');
  writeFileSync(file, '');
  onTestFinished(() => rmSync(dirname(file), { recursive: true }));
  const world = await openWorld(script);
  await world.startWorker({ journal: file });
  const session = await world.begin();
  await world.until(session, 'idle');
  expect(await world.control.refunds()).toHaveLength(1);
});

test('a journal that is swept away, or whose disk is full, fails no call', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'journal-'));
  const journal = await InFlightJournal.open(directory);
  rmSync(directory, { recursive: true });
  const calls: string[] = [];
  // More than it writes before it tidies up.
  for (let n = 0; n < 1_500; n++) {
    const info = {
      workflowExecution: { workflowId: 'w', runId: 'r' },
      base64TaskToken: `${n}`.padStart(300, '0'),
    };
    const { inbound } = journal.interceptor({ info } as Context);
    await inbound?.execute?.({ args: [], headers: {} }, async () => calls.push(info.base64TaskToken));
  }
  expect(calls).toHaveLength(1_500);
  await journal.close();
});
