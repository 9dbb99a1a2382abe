/** A session that goes on in new runs of its workflow: nothing is lost, and nothing happens twice. */
import { expect, test } from 'vitest';
import { copyJson } from '../../src/contract/json.ts';
import { KEPT_MESSAGE_IDS } from '../../src/contract/past.ts';
import { type Leaving, leavingOf } from '../../src/contract/piece.ts';
import { foldHistory } from '../../src/history/index.ts';
import { effectsSince, TemporalSaver } from '../../src/index.ts';
import { deleteRun, findExecution, untilGone } from '../../src/temporal/executions.ts';
import { readPages } from '../../src/temporal/index.ts';
import { loadPiece, pieceQuery } from '../../src/temporal/past.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { rejection } from '../support/rejection.ts';
import { until } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';
import { openTeller, runsOf, say } from './support/teller.ts';

test('a session of many turns goes on over runs, and is read as one', async () => {
  const { stage, session, paid } = await openTeller();
  const texts = [...Array(12).keys()].map((n) => `payEach ${n}`);
  await say(session, ...texts);

  const runs = await runsOf(stage, session);
  expect(runs.length).toBeGreaterThan(6);
  expect(paid).toEqual(texts);
  const { items, first, total } = await session.transcript({ limit: 1_000 });
  expect([first, total, items.length]).toEqual([0, 48, 48]);
  const said = items.filter(({ role }) => role === 'user').flatMap(({ blocks }) => blocks);
  expect(said).toEqual(texts.map((text) => ({ kind: 'text', text })));
  expect(new Set(items.map(({ id }) => id)).size).toBe(48);
  const middle = await session.transcript({ before: 20, limit: 5 });
  expect(middle).toEqual({ items: items.slice(15, 20), first: 15, total: 48 });
  const log = await session.calls({ limit: 1_000 });
  expect(log.items.map(({ args }) => args)).toEqual(texts.map((bill) => ({ bill })));
  const state = await expectFoldEqualsLive(stage.client, session);
  expect(state.past?.messages).toBeGreaterThan(40);
  expect(state.turn).toBe(24);
  // The model has seen it whole.
  const { request } = stage.model.requests.at(-1) ?? {};
  expect(request?.messages.filter(({ role }) => role === 'user').map(({ text }) => text)).toEqual(texts);
  const checkpoints = await new TemporalSaver(stage.client).list(session.id, { limit: 1_000 });
  const found = new Set(checkpoints.map(({ id }) => id.split(':')[0]));
  // The newest run may have no task yet.
  expect(runs.slice(0, -1).filter((run) => !found.has(run))).toEqual([]);
});

test('what a run hands its worker to store is what its history gives, and comes back whole', async () => {
  const { stage, session } = await openTeller();
  await say(session, 'pay rent', 'payEach 1', 'hello', 'payEach 1', 'pay rent', 'payEach 2');

  const { past } = await session.snapshot();
  if (past === undefined) return expect.fail('no run has ended');
  const last = await loadPiece(stage.client, past.newest);
  const before = await Promise.all(last.before.map((ref) => loadPiece(stage.client, ref)));
  const expected: Leaving[] = [];
  for (const runId of (await runsOf(stage, session)).slice(0, last.before.length + 1)) {
    const pages = readPages(stage.client, { workflowId: session.id, runId });
    let given: Leaving | undefined;
    await foldHistory(pages, stage.client.options, {
      runId,
      onTask: ({ state }) => {
        // A message may bring another task while its worker stores it.
        if (state.inFlight.some(({ kind }) => kind === 'storePast')) given ??= copyJson(leavingOf(state));
      },
    });
    if (given !== undefined) expected.push(given);
  }
  expect(expected.length).toBeGreaterThan(2);
  expect([...before, last]).toMatchObject(expected);
});

test('a call equal to one of an earlier run is answered from its record', async () => {
  const { stage, session, paid } = await openTeller();
  await say(session, 'pay rent', ...[...Array(6).keys()].map((n) => `payEach ${n}`), 'pay rent');

  expect((await runsOf(stage, session)).length).toBeGreaterThan(3);
  expect(paid.filter((bill) => bill === 'pay rent')).toEqual(['pay rent']);
  const { items } = await session.calls({ limit: 1_000 });
  expect(items.at(-1)).toMatchObject({ name: 'pay', replayOf: items[0]?.id, status: { kind: 'completed' } });
  const { lastText, budget } = await session.state();
  expect(lastText).toContain('"receipt":1');
  expect(budget.spent.toolCalls).toBe(7);
});

test('a message that was taken in an earlier run is taken once, however long ago', async () => {
  const { stage, session, paid } = await openTeller();
  // More messages than a run keeps the ids of.
  const ids = [...Array(KEPT_MESSAGE_IDS + 20).keys()].map((n) => (n % 2 === 0 ? `msg_m${n}` : `m${n}`));
  // All in one turn.
  await session.pause();
  for (const id of ids) await session.send({ id, text: 'hello' });
  await session.resume();
  await say(session, ...[...Array(6).keys()].map((n) => `payEach ${n}`));
  const { past } = await session.snapshot();
  expect(past?.messageIds).not.toContain(ids[0]);
  expect(past?.messageIds).toContain(ids.at(-2));
  const { messages } = await session.state();
  const again = [...ids.slice(0, 2), ...ids.slice(-2)];
  await Promise.all(again.map((id) => session.send({ id, text: 'hello' })));
  await stage.client.workflow.getHandle(session.id).signal('send', { id: ids[2], text: 'hello' });
  await say(session, 'payEach last');

  expect((await runsOf(stage, session)).length).toBeGreaterThan(3);
  // The message, the call, its result and the answer.
  expect((await session.state()).messages).toBe(messages + 4);
  expect(paid.at(-1)).toBe('payEach last');
  expect((await session.snapshot()).notices.map(({ kind }) => kind)).not.toContain('message_unchecked');
});

test('another text under the id of a message of an earlier run is refused, and a signal with one is noted', async () => {
  const { stage, session } = await openTeller({ runTurns: 1 });
  await session.send({ id: 'order', text: 'hello' });
  await say(session, 'one', 'two');
  expect((await session.snapshot()).past?.messageIds).toContain('order');

  const { messages } = await session.state();
  expect(await rejection(session.send({ id: 'order', text: 'goodbye' }))).toMatchObject({
    code: 'CONFLICT',
    details: { field: 'id', id: 'order' },
  });
  await session.send({ id: 'order', text: 'hello' });
  await stage.client.workflow.getHandle(session.id).signal('send', { id: 'order', text: 'goodbye' });
  await expect
    .poll(async () => (await session.snapshot()).notices)
    .toContainEqual({
      at: expect.any(String),
      kind: 'message_dropped',
      message: 'a message was dropped: an earlier one had its id, order',
    });
  expect((await session.state()).messages).toBe(messages);
  await expectSound(stage, session);
});

test('messages that come while the session goes on in a new run are taken once, in order', async () => {
  const { stage, session, paid } = await openTeller();
  const texts = [...Array(40).keys()].map((n) => `payEach ${n}`);
  const handle = stage.client.workflow.getHandle(session.id);
  for (const [n, text] of texts.entries()) {
    if (n % 2 === 0) await session.send({ id: `m${n}`, text });
    else await handle.signal('send', { id: `m${n}`, text });
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  await expect.poll(async () => (await session.state()).phase, { timeout: 60_000 }).toBe('idle');
  await expect.poll(async () => (await session.state()).queued, { timeout: 60_000 }).toBe(0);

  const { items } = await session.transcript({ limit: 1_000 });
  const said = items.flatMap(({ role, blocks }) => (role === 'user' ? blocks : []));
  expect(said).toEqual(texts.map((text) => ({ kind: 'text', text })));
  expect(new Set(paid).size).toBe(paid.length);
  expect((await runsOf(stage, session)).length).toBeGreaterThan(1);
});

test('a cancellation of Temporal that comes while sessions go on in new runs ends each of them', async () => {
  const { stage } = await openTeller({ runTurns: 1 });
  const ended = await Promise.all(
    [...Array(12).keys()].map(async (n) => {
      const id = stage.id(`cancelled-${n}`);
      const session = await stage.sessions.start('teller', { id, message: 'hello' });
      await until(session, ({ turn }) => turn > 0);
      // At any moment of a roll: they come one after the other, and each takes some tens of milliseconds.
      await session.send('again');
      await new Promise((resolve) => setTimeout(resolve, 8 * n));
      const handle = stage.client.workflow.getHandle(id);
      await handle.cancel();
      await expect(handle.result()).rejects.toThrow('Workflow execution cancelled');
      return session.snapshot();
    }),
  );
  for (const { status } of ended) expect(status).toMatchObject({ kind: 'cancelled', by: 'temporal' });
  expect(ended.filter(({ past }) => past !== undefined)).not.toEqual([]);
});

test('a client cannot start a session with the state of a run', async () => {
  const { stage, session } = await openTeller();
  await say(session, 'hello');
  const carried = await session.snapshot();
  const id = stage.id('forged');
  await stage.client.workflow.start('agentSession', {
    workflowId: id,
    taskQueue: stage.taskQueue,
    args: [{ agent: 'teller', carried }],
  });
  await expect(stage.client.workflow.result(id)).rejects.toMatchObject({
    cause: { message: expect.stringContaining('carried: only a session that goes on') },
  });
});

test('a session is rewound to a checkpoint of an earlier run: what happened since answers', async () => {
  const { stage, session, paid } = await openTeller();
  await say(session, 'pay a', 'payEach b');
  const checkpoint = await new TemporalSaver(stage.client).get(session.id);
  await say(session, 'pay c', ...[...Array(6).keys()].map((n) => `payEach ${n}`));
  const before = [...paid];
  const then = await new TemporalSaver(stage.client).get(session.id, { checkpointId: checkpoint?.id });
  const now = await new TemporalSaver(stage.client).get(session.id);
  if (then === null || now === null) return expect.fail('a checkpoint is gone');
  const since = await effectsSince(stage.client, then, now);
  expect(since.map(({ args, again }) => [args, again])).toEqual(
    before.slice(2).map((bill) => [{ bill }, 'answered']),
  );

  const rewound = await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: then.id },
    { by: 'me', reason: 'again' },
  );
  await say(rewound, 'pay c', 'pay a', 'payEach 7', 'payEach 8');
  expect(paid).toEqual([...before, 'payEach 7', 'payEach 8']);
  const { items } = await rewound.transcript({ limit: 1_000 });
  const said = items.flatMap(({ role, blocks }) => (role === 'user' ? blocks : []));
  expect(said.map((block) => block.kind === 'text' && block.text)).toEqual([
    'pay a',
    'payEach b',
    'pay c',
    'pay a',
    'payEach 7',
    'payEach 8',
  ]);
});

test('a fork of a session keeps its past when the session is deleted', async () => {
  const { stage, session } = await openTeller();
  await say(session, 'pay a', 'payEach b', 'payEach c', 'payEach d');
  const saver = new TemporalSaver(stage.client);
  const checkpointId = (await saver.get(session.id))?.id ?? '';
  const id = stage.id('fork');
  const forked = await stage.sessions.fork(
    { sessionId: session.id, checkpointId },
    { id, by: 'me', reason: 'try' },
  );
  await say(forked, 'payEach e');
  await saver.delete(session.id, { end: true });

  const { items } = await forked.transcript({ limit: 1_000 });
  const said = items.flatMap(({ role, blocks }) => (role === 'user' ? blocks : []));
  expect(said).toHaveLength(5);
  await say(forked, 'pay a', 'payEach f', 'payEach g');
  expect((await forked.transcript({ limit: 1_000 })).items).toHaveLength(32);
});

test('a deleted session leaves nothing behind', async () => {
  const { stage, session } = await openTeller();
  await say(session, ...[...Array(8).keys()].map((n) => `payEach ${n}`));
  const { past } = await session.snapshot();
  const piece = `perdure-content/${past?.newest.key}/0`;
  expect((await stage.client.workflow.getHandle(piece).describe()).status.name).toBe('RUNNING');
  const prefix = piece.split('/').slice(0, 3).join('/');
  const query = `WorkflowId STARTS_WITH '${prefix}/'`;
  await expect.poll(async () => (await stage.client.workflow.count(query)).count).toBeGreaterThan(1);
  await new TemporalSaver(stage.client).delete(session.id, { end: true });

  await expect.poll(async () => (await stage.client.workflow.count(query)).count).toBe(0);
});

test('a session whose runs retention has removed is deleted with its pieces', async () => {
  const { stage, session } = await openTeller();
  await say(session, ...[...Array(4).keys()].map((n) => `payEach ${n}`));
  const query = pieceQuery(session.id);
  await expect.poll(async () => (await stage.client.workflow.count(query)).count).toBeGreaterThan(0);
  await session.cancel();
  await session.result();
  for (const runId of await runsOf(stage, session)) {
    await deleteRun(stage.client, session.id, runId);
    await untilGone(stage.client, session.id, runId);
  }
  await new TemporalSaver(stage.client).delete(session.id);

  await expect.poll(async () => (await stage.client.workflow.count(query)).count).toBe(0);
});

test('a session that is reset to an earlier run does nothing again, also in the runs after it', async () => {
  const { stage, session, paid } = await openTeller();
  await say(session, 'payEach a', 'payEach b', 'pay c', 'payEach d', 'payEach e', 'payEach f');
  const [first = ''] = await runsOf(stage, session);
  const { events } = await stage.client.workflow.getHandle(session.id, first).fetchHistory();
  const task = events?.find(
    ({ workflowTaskCompletedEventAttributes }) => workflowTaskCompletedEventAttributes,
  );
  await stage.client.workflowService.resetWorkflowExecution({
    namespace: stage.client.options.namespace,
    workflowExecution: { workflowId: session.id, runId: first },
    reason: 'test',
    requestId: crypto.randomUUID(),
    workflowTaskFinishEventId: task?.eventId ?? null,
  });
  await expect.poll(async () => (await session.state()).phase).toBe('idle');
  await say(session, ...[...Array(4).keys()].map((n) => `payEach new ${n}`), 'pay c');

  expect(paid.filter((bill) => bill === 'pay c')).toEqual(['pay c']);
  expect(new Set(paid).size).toBe(paid.length);
});

test('each of two forks of one checkpoint has a past of its own', async () => {
  const { stage, session } = await openTeller();
  await say(session, 'pay a', 'payEach b', 'payEach c', 'payEach d');
  const saver = new TemporalSaver(stage.client);
  const from = { sessionId: session.id, checkpointId: (await saver.get(session.id))?.id ?? '' };
  const fork = (name: string) => stage.sessions.fork(from, { id: stage.id(name), by: 'me', reason: 'try' });
  const one = await fork('one');
  await say(one, 'payEach e');
  // What was loaded for the first is still in the worker's memory.
  const other = await fork('other');
  await say(other, 'payEach f');
  await saver.delete(one.id, { end: true });

  expect((await other.transcript({ limit: 1_000 })).items).toHaveLength(20);
  expect((await session.transcript({ limit: 1_000 })).items).toHaveLength(16);
});

test('a session stays in its run when what it would have to store of another one is gone', async () => {
  const { stage, session, paid } = await openTeller();
  await say(session, 'payEach a');
  const { workflowService, options } = stage.client;
  const { namespace } = options;
  const [first = ''] = await runsOf(stage, session);
  const { events } = await stage.client.workflow.getHandle(session.id, first).fetchHistory();
  const tasks = events?.filter((event) => event.workflowTaskCompletedEventAttributes) ?? [];
  const { runId } = await workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: session.id, runId: first },
    reason: 'test',
    requestId: crypto.randomUUID(),
    workflowTaskFinishEventId: tasks.at(-1)?.eventId ?? null,
  });
  await workflowService.deleteWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: session.id, runId: first },
  });
  await expect.poll(() => findExecution(stage.client, session.id, first)).toBeNull();
  await say(session, 'hello', 'again', 'and again');

  const state = await session.snapshot();
  expect(state.runId).toBe(runId);
  expect(state.notices.map(({ kind }) => kind)).toContain('past_not_stored');
  expect(paid).toEqual(['payEach a']);
});
