import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import {
  createWorker,
  defineAgent,
  defineTool,
  type SessionSummary,
  Sessions,
  TemporalSaver,
} from '../../src/index.ts';
import { ensureSearchAttributes, SESSION_SEARCH_ATTRIBUTES, startServer } from '../../src/server/index.ts';
import { startScriptedModel } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';
import { allPages, expectSound } from './support/sound.ts';

test('transcript and calls are read in pages from their end', async () => {
  const stage = await openStage(({ stepInTurn, assistantCount }) =>
    stepInTurn === 0
      ? { toolCalls: [{ name: 'look', args: { n: assistantCount } }] }
      : { text: `answer ${assistantCount}` },
  );
  const look = defineTool({
    inputSchema: z.object({ n: z.number() }),
    effect: 'read',
    execute: ({ n }) => n,
  });
  await stage.startWorker([
    defineAgent({ name: 'pager', model: stage.provider('m'), instructions: 'Page.', tools: { look } }),
  ]);
  const session = await stage.sessions.start('pager', { id: stage.id(), message: '0' });
  for (let i = 1; i <= 6; i++) {
    await until(session, ({ turn, phase }) => turn === 2 * i && phase === 'idle');
    if (i < 6) await session.send(`${i}`);
  }
  const whole = (await session.snapshot()).transcript;
  expect(whole).toHaveLength(24);
  expect(
    await allPages(({ before }) =>
      session.transcript({ limit: 5, ...(before === undefined ? {} : { before }) }),
    ),
  ).toEqual(whole);
  expect(await session.transcript({ before: 10, limit: 3 })).toEqual({
    items: whole.slice(7, 10),
    first: 7,
    total: 24,
  });
  expect(await session.transcript({ before: 2, limit: 50 })).toEqual({
    items: whole.slice(0, 2),
    first: 0,
    total: 24,
  });
  for (const page of [{ limit: 0 }, { before: 0 }, { before: -3 }, { limit: -1 }]) {
    expect((await session.transcript(page)).items).toEqual([]);
  }
  expect((await session.transcript({ before: 1_000, limit: 1 })).items).toEqual(whole.slice(-1));
  expect((await session.calls({ limit: 2 })).items.map(({ id }) => id)).toEqual(['call_9_0', 'call_11_0']);
  // What a plain client may send instead of a page.
  const handle = stage.client.workflow.getHandle(session.id);
  for (const page of ['x', { before: 'x' }, { limit: 1.5 }, []]) {
    expect(await handle.query<{ total: number }, unknown[]>('transcript', page)).toMatchObject({ total: 24 });
  }
  await expectSound(stage, session);
});

test('a session of more than a query can carry: the snapshot comes from the history, pages and the view go on', async () => {
  const stage = await openStage(() => ({ text: 'ok' }));
  await stage.startWorker([
    defineAgent({ name: 'pager', model: stage.provider('m'), instructions: 'Page.', runTurns: false }),
  ]);
  const session = await stage.sessions.start('pager', { id: stage.id(), message: 'a'.repeat(900_000) });
  await until(session, ({ turn, phase }) => turn === 1 && phase === 'idle');
  for (const [i, letter] of ['b', 'c', 'd'].entries()) {
    await session.send(letter.repeat(370_000));
    await until(session, ({ turn, phase }) => turn === i + 2 && phase === 'idle');
  }
  const { state, source } = await session.read();
  expect({ source, messages: state.transcript.length }).toEqual({ source: 'history', messages: 8 });
  const page = await session.transcript();
  expect(page.total).toBe(8);
  expect(page.first).toBeGreaterThan(0);
  expect(await allPages((input) => session.transcript(input))).toHaveLength(8);
  await expectSound(stage, session);
});

test('a task ends with its result, a chat waits', async () => {
  const stage = await openStage(() => ({ text: 'the answer' }));
  await stage.startWorker([
    defineAgent({ name: 'modes', model: stage.provider('m'), instructions: 'Answer.' }),
  ]);
  const task = await stage.sessions.start('modes', { id: stage.id(), message: 'q', mode: 'task' });
  expect(await task.result()).toEqual({ status: 'completed', text: 'the answer', turns: 1 });
  const chat = await stage.sessions.start('modes', { id: stage.id(), message: 'q', mode: 'chat' });
  await untilPhase(chat, 'idle');
  const empty = await stage.sessions.start('modes', { id: stage.id() });
  expect(await untilPhase(empty, 'idle')).toMatchObject({ messages: 0, turn: 0 });
  await empty.send('late');
  expect(await until(empty, ({ turn }) => turn === 1)).toMatchObject({ lastText: 'the answer' });
  for (const session of [task, chat, empty]) await expectSound(stage, session);
});

test('sessions are listed by agent, status and tenant', async () => {
  const stage = await openStage(({ lastUserText }) =>
    lastUserText === 'ask me' ? { fault: 'status', status: 400 } : { text: 'ok' },
  );
  const agent = `lister-${stage.taskQueue}`;
  await stage.startWorker([defineAgent({ name: agent, model: stage.provider('m'), instructions: 'List.' })]);
  const start = (message: string, tenant: string, mode: 'chat' | 'task'): ReturnType<Sessions['start']> =>
    stage.sessions.start(agent, { id: stage.id(), message, context: { tenant }, mode });
  const done = await start('a', 'acme', 'task');
  const idle = await start('b', 'acme', 'chat');
  const waiting = await start('ask me', 'umbrella', 'chat');
  const cancelled = await start('c', 'umbrella', 'chat');
  await Promise.all([done.result(), untilPhase(idle, 'idle'), untilPhase(waiting, 'waiting')]);
  await cancelled.cancel();
  await cancelled.result();
  const list = async (options: Parameters<Sessions['list']>[0]): Promise<SessionSummary[]> => {
    const all: SessionSummary[] = [];
    for await (const summary of stage.sessions.list({ agent, ...options })) all.push(summary);
    return all;
  };
  const statuses = {
    [done.id]: 'completed',
    [idle.id]: 'active',
    [waiting.id]: 'waiting',
    [cancelled.id]: 'cancelled',
  };
  await expect
    .poll(async () => Object.fromEntries((await list({})).map(({ id, status }) => [id, status])))
    .toEqual(statuses);
  for (const [id, status] of Object.entries(statuses)) {
    expect((await list({ status })).map((summary) => summary.id)).toEqual([id]);
  }
  expect(new Set((await list({ tenant: 'acme' })).map(({ id }) => id))).toEqual(new Set([done.id, idle.id]));
  expect(await list({ tenant: 'nobody' })).toEqual([]);
  expect(await list({ prefix: idle.id.slice(0, -1) })).toHaveLength(4);
  expect((await list({ prefix: idle.id })).map(({ id }) => id)).toEqual([idle.id]);
  // Not a pattern.
  expect(await list({ prefix: '%' })).toEqual([]);
  expect(await list({ limit: 2 })).toHaveLength(2);
  expect((await list({ status: 'completed' }))[0]).toMatchObject({
    agent,
    tenant: 'acme',
    closedAt: expect.any(String),
  });
});

test('what was ended from outside is listed as that, and not as what it did', async () => {
  const stage = await openStage(() => ({ text: 'ok' }));
  const agent = `ended-${stage.taskQueue}`;
  await stage.startWorker([defineAgent({ name: agent, model: stage.provider('m'), instructions: 'List.' })]);
  const killed = await stage.sessions.start(agent, { id: stage.id(), message: 'a' });
  const rewound = await stage.sessions.start(agent, { id: stage.id(), message: 'b' });
  await Promise.all([killed, rewound].map((session) => untilPhase(session, 'idle')));
  const [checkpoint] = await new TemporalSaver(stage.client).list(rewound.id, { limit: 1 });
  await stage.client.workflow.getHandle(killed.id).terminate('by a test');
  const from = { sessionId: rewound.id, checkpointId: checkpoint?.id ?? '' };
  await stage.sessions.rewind(from, { agent, by: 'ada', reason: 'a test' });
  const listed = async (status: string): Promise<string[]> => {
    const ids: string[] = [];
    for await (const { id } of stage.sessions.list({ agent, status })) ids.push(id);
    return ids.toSorted();
  };
  await expect.poll(() => listed('terminated')).toEqual([killed.id, rewound.id].toSorted());
  await expect.poll(() => listed('active')).toEqual([rewound.id]);
  expect(await listed('paused')).toEqual([]);
  expect(await listed('failed')).toEqual([]);
});

test('a server that does not know our search attributes runs sessions, too', async () => {
  const server = await startServer({ inMemory: true });
  onTestFinished(() => server.stop());
  const model = await startScriptedModel({ script: () => ({ text: 'fine without' }) });
  onTestFinished(() => model.stop());
  const provider = createOpenAICompatible({ name: 'scripted', baseURL: model.url });
  const native = await NativeConnection.connect({ address: server.address });
  onTestFinished(() => native.close());
  const worker = await createWorker({
    agents: [defineAgent({ name: 'plain', model: provider('m'), instructions: 'Work.' })],
    connection: native,
    journal: false,
  });
  const run = worker.run();
  onTestFinished(async () => {
    worker.shutdown();
    await run;
  });
  const connection = await Connection.connect({ address: server.address });
  onTestFinished(() => connection.close());
  const sessions = new Sessions(new Client({ connection }));
  const session = await sessions.start('plain', { message: 'hi', context: { tenant: 'acme' }, mode: 'task' });
  expect(await session.result()).toMatchObject({ text: 'fine without' });
  expect((await session.snapshot()).searchAttributes).toEqual([]);
  // Without them a list cannot be filtered, and says so.
  const { value: listed } = await sessions.list().next();
  expect(listed).toMatchObject({ id: session.id, agent: null, tenant: null, status: 'completed' });
  expect(await rejection(sessions.list({ tenant: 'acme' }).next())).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('perdure setup'),
  });
  const open = await sessions.start('plain', { message: 'hi' });
  await untilPhase(open, 'idle');
  const unknown = async (status?: string): Promise<string[]> => {
    const ids: string[] = [];
    for await (const summary of sessions.list(status === undefined ? {} : { status })) {
      if (summary.status === 'unknown') ids.push(summary.id);
    }
    return ids;
  };
  await expect.poll(() => unknown()).toEqual([open.id]);
  await ensureSearchAttributes(connection, 'default', SESSION_SEARCH_ATTRIBUTES);
  // The server needs a moment to know them.
  const asked = (): Promise<string[]> => unknown('unknown').catch(() => []);
  await expect.poll(asked).toEqual([open.id]);
});
