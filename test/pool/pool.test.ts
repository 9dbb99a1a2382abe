/** A pool of money that sessions share, on a real server. */
import { expect, onTestFinished, test } from 'vitest';
import { poolWorkflowId } from '../../src/contract/workflow-ids.ts';
import {
  agentTool,
  type DefinedAgent,
  defineAgent,
  type PoolView,
  type Session,
  TemporalSaver,
} from '../../src/index.ts';
import { openApi } from '../http/support/api.ts';
import { expectSound, replay } from '../session/support/sound.ts';
import { polled } from '../support/polled.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { childOf } from '../support/tree.ts';
import { openWorld } from '../support/world.ts';

/** A reply of 200 tokens costs 2 dollars, and a prompt nothing: a call can cost 2 dollars at most. */
const PRICE = { inputPerMillion: 0, outputPerMillion: 10_000 };

function agentOf(stage: Stage): DefinedAgent {
  return defineAgent({
    name: 'spender',
    model: { model: stage.provider('m'), price: PRICE },
    instructions: 'Work.',
    maxOutputTokens: 200,
  });
}

/** The pool once a condition holds. */
async function untilPool(
  pool: { get(): Promise<PoolView> },
  holds: (view: PoolView) => boolean,
): Promise<PoolView> {
  let view: PoolView | undefined;
  await polled(
    async () => {
      view = await pool.get();
      return holds(view);
    },
    () => JSON.stringify(view, null, 1),
  );
  return view as PoolView;
}

async function spentOf(sessions: readonly Session[]): Promise<number> {
  const views = await Promise.all(sessions.map((session) => session.budget()));
  return views.reduce((sum, { spent }) => sum + spent.usd, 0);
}

test('three sessions under one cap: the one that meets it waits, and continues when a person raises the cap', async () => {
  // Each message is answered for 2 dollars.
  const stage = await openStage(() => ({ text: 'done', usage: { inputTokens: 10, outputTokens: 200 } }));
  await stage.startWorker([agentOf(stage)]);
  const pool = stage.sessions.pool(stage.id('pool'));
  expect(await pool.set({ usd: 5, by: 'ada' })).toMatchObject({ limits: { usd: 5 }, set: { by: 'ada' } });
  const start = (): Promise<Session> =>
    stage.sessions.start('spender', { id: stage.id(), message: 'go', pool: pool.id });
  const first = await start();
  await untilPhase(first, 'idle');
  const second = await start();
  await untilPhase(second, 'idle');
  const third = await start();
  const { wait } = await untilPhase(third, 'waiting');
  expect(wait).toMatchObject({
    reason: 'budget',
    message: `usd: pool ${pool.id} has 5 US dollars: 4 spent, 2 needed`,
    next: { action: 'pool', sessionId: third.id, pool: pool.id, cap: 'usd', atLeast: 6 },
  });
  expect(stage.model.requests).toHaveLength(2);
  expect(await pool.get()).toMatchObject({
    spent: { usd: 4, turns: 2 },
    held: { usd: 0 },
    waiting: [{ sessionId: third.id, need: { usd: 2 } }],
  });

  await pool.set({ usd: 10 });
  await untilPhase(third, 'idle');
  const all = [first, second, third];
  const { spent, total, held, waiting } = await untilPool(pool, (view) => view.spent.usd === 6);
  expect({ spent: spent.usd, total: total.usd, held: held.usd, waiting }).toEqual({
    spent: await spentOf(all),
    total: 6,
    held: 0,
    waiting: [],
  });
  for (const each of all) await expectSound(stage, each);
});

test('sessions side by side never spend more than the cap, and what one gives back lets the next continue', async () => {
  let running = 0;
  let most = 0;
  const stage = await openStage(async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 50));
    running -= 1;
    // It reserves 2 dollars and costs 10 cents.
    return { text: 'done', usage: { inputTokens: 10, outputTokens: 10 } };
  });
  await stage.startWorker([agentOf(stage)]);
  const pool = stage.sessions.pool(stage.id('pool'));
  await pool.set({ usd: 5 });
  const sessions = await Promise.all(
    Array.from({ length: 6 }, () =>
      stage.sessions.start('spender', { id: stage.id(), message: 'go', pool: pool.id }),
    ),
  );
  for (const session of sessions) await untilPhase(session, 'idle');
  expect(most).toBeLessThanOrEqual(2);
  const { spent, held } = await untilPool(pool, (view) => view.held.usd === 0);
  expect([spent.usd, held.usd]).toEqual([expect.closeTo(0.6, 9), 0]);
  for (const each of sessions.slice(0, 2)) await expectSound(stage, each);
});

test('a pool that nobody has set: the session waits and says so, and continues once it is set', async () => {
  const stage = await openStage(() => ({ text: 'done', usage: { inputTokens: 10, outputTokens: 10 } }));
  await stage.startWorker([agentOf(stage)]);
  const pool = stage.sessions.pool(stage.id('pool'));
  expect(await rejection(pool.get())).toMatchObject({
    code: 'POOL_NOT_FOUND',
    message: expect.stringContaining(`perdure pool ${pool.id} --usd 10`),
  });
  const session = await stage.sessions.start('spender', { id: stage.id(), message: 'go', pool: pool.id });
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait?.message).toContain(`there is no pool ${pool.id}`);
  await pool.set({ tokens: 100_000 });
  await session.resume();
  await until(session, ({ phase }) => phase === 'idle');
  await untilPool(pool, ({ spent, held }) => spent.tokens === 20 && held.tokens === 0);
  await expectSound(stage, session);
});

test('a session whose model has no price waits for its pool, which tells it when the cap on dollars is gone', async () => {
  const stage = await openStage(() => ({ text: 'done' }));
  await stage.startWorker([defineAgent({ name: 'free', model: stage.provider('m'), instructions: 'Work.' })]);
  const pool = stage.sessions.pool(stage.id('pool'));
  await pool.set({ usd: 5, tokens: 100_000 });
  const session = await stage.sessions.start('free', { id: stage.id(), message: 'go', pool: pool.id });
  expect((await untilPhase(session, 'waiting')).wait?.message).toContain('has no price');
  await untilPool(pool, ({ waiting }) => waiting.length === 1);
  await pool.set({ usd: null });
  await until(session, ({ phase }) => phase === 'idle');
  await expectSound(stage, session);
  const workflowId = poolWorkflowId(pool.id);
  await replay(await stage.client.workflow.getHandle(workflowId).fetchHistory(), workflowId);
});

test('a session goes on under a cap on dollars when a deploy gives its model a price', async () => {
  const stage = await openStage(() => ({ text: 'done' }));
  const model = { model: stage.provider('m') };
  const free = defineAgent({ name: 'free', model, instructions: 'Work.', maxOutputTokens: 200 });
  const worker = await stage.startWorker([free]);
  const pool = stage.sessions.pool(stage.id('pool'));
  await pool.set({ usd: 5 });
  const session = await stage.sessions.start('free', { id: stage.id(), message: 'go', pool: pool.id });
  expect((await untilPhase(session, 'waiting')).wait?.message).toContain('has no price');
  await worker.stop();
  await stage.startWorker([
    defineAgent({
      name: 'free',
      model: { ...model, price: PRICE },
      instructions: 'Work.',
      maxOutputTokens: 200,
    }),
  ]);
  await session.resume();
  await until(session, ({ phase }) => phase === 'idle');
  await expectSound(stage, session);
});

test('a worker killed while three sessions ask the model: the pool has what the sessions have on record', async () => {
  let asked = 0;
  const world = await openWorld(() => (asked++ < 3 ? { fault: 'hang' } : { text: 'Hello.' }));
  const pool = world.sessions.pool(`pool-${world.taskQueue}`);
  const worker = await world.startWorkerProcess();
  await pool.set({ tokens: 1_000_000 });
  const begin = (): Promise<Session> => world.startSession('priced', { message: 'Please.', pool: pool.id });
  const sessions = await Promise.all([begin(), begin(), begin()]);
  await expect.poll(() => world.model.requests.length, { timeout: 60_000 }).toBe(3);
  await worker.crash();
  await world.startWorkerProcess();
  for (const session of sessions) await world.until(session, 'idle');
  const { spent } = await untilPool(pool, (view) => view.held.tokens === 0);
  const views = await Promise.all(sessions.map((session) => session.budget()));
  const own = views.map(({ spent: { inputTokens, outputTokens } }) => inputTokens + outputTokens);
  expect(spent.tokens).toBe(own.reduce((sum, tokens) => sum + tokens, 0));
  // A slow machine may miss more heartbeats than those of the dead worker.
  for (const view of views) expect(view.spent.lostReplies).toBeGreaterThanOrEqual(1);
  // Not a token is left.
  await pool.set({ tokens: spent.tokens });
  const last = await begin();
  expect((await world.until(last, 'waiting')).wait?.message).toMatch(/^tokens: pool \S+ has \d+ tokens: /);
  for (const session of [...sessions, last]) await world.check(session);
});

test('the inbox shows a pool once, and raising its cap over HTTP wakes all who wait for it', async () => {
  const stage = await openStage(() => ({ text: 'done', usage: { inputTokens: 10, outputTokens: 200 } }));
  await stage.startWorker([agentOf(stage)]);
  const { client, sessions, taskQueue } = stage;
  const api = await openApi(new TemporalSaver(client, { taskQueue }), { taskQueue });
  onTestFinished(api.close);
  const tenant = stage.id('tenant');
  const pool = sessions.pool(tenant);
  await pool.set({ usd: 1 });
  const start = async (): Promise<Session> => {
    const json = { agent: 'spender', message: { text: 'go' }, context: { tenant }, pool: tenant };
    const { body } = await api.call<{ id: string }>('POST /sessions', { json });
    return sessions.get(body.id);
  };
  const [first, second] = [await start(), await start()];
  for (const session of [first, second]) await untilPhase(session, 'waiting');
  await polled(
    async () => (await sessions.inbox({ tenant })).waiting === 2,
    () => 'two sessions wait',
  );
  const { items } = await sessions.inbox({ tenant });
  expect(items).toMatchObject([
    { kind: 'budget', answers: [{ answer: 'pool', command: `perdure pool ${tenant} --usd 4` }] },
  ]);
  expect((await first.budget()).pool).toMatchObject({ id: tenant, held: { usd: 0 } });

  const raised = await api.call(`PUT /pools/${tenant}`, { json: { usd: 4, by: 'ada' } });
  expect(raised).toMatchObject({ status: 200, body: { limits: { usd: 4 }, set: { by: 'ada' } } });
  for (const session of [first, second]) await untilPhase(session, 'idle');
  await untilPool(pool, ({ spent, held }) => spent.usd === 4 && held.usd === 0);
  expect((await api.call(`GET /pools/${tenant}`)).body).toMatchObject({ spent: { usd: 4 }, waiting: [] });
  expect(await api.call('GET /pools/nobody')).toMatchObject({ status: 404, code: 'POOL_NOT_FOUND' });
  expect(await api.call(`PUT /pools/${tenant}`, { json: { usd: 0 } })).toMatchObject({ status: 400 });
});

test('a pool is refused with caps, periods and zones that it cannot keep, by name', async () => {
  const stage = await openStage(() => ({ text: 'done' }));
  await stage.startWorker([agentOf(stage)]);
  const cases: [object, string][] = [
    [{ usd: 0 }, 'usd: write a number above 0, or null for no cap'],
    [{ usd: 'ten' }, 'usd: write a number above 0, or null for no cap'],
    [{ tokens: -5 }, 'tokens: write a whole number above 0, or null for no cap'],
    [{ turns: 0.5 }, 'turns: write a whole number above 0, or null for no cap'],
    [{ usd: 1, period: 'week' }, 'period: expected day, month or null'],
    [{ usd: 1, period: 'day', zone: 'Berlin' }, 'zone: expected a time zone such as Europe/Berlin'],
    [{ dollars: 1 }, 'dollars: is unknown. Known names: usd, '],
    [{ period: 'day' }, 'limits: the pool needs a cap: usd, tokens, turns, activeMs'],
  ];
  for (const [input, message] of cases) {
    const refused = await rejection(stage.sessions.pool(stage.id('pool')).set(input));
    expect(refused).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) });
  }
  for (const id of ['', ' a', 'a b', 'x'.repeat(201)]) {
    const expected = {
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('expected an id of 1 to 200'),
    };
    expect(() => stage.sessions.pool(id)).toThrow(expect.objectContaining(expected));
    expect(await rejection(stage.sessions.start('spender', { pool: id }))).toMatchObject(expected);
  }
});

test('a session keeps its pool: a start that names another one is refused', async () => {
  const { sessions, id } = await openStage(() => ({ text: 'done' }));
  const session = id();
  await sessions.start('spender', { id: session, pool: 'one' });
  const again = { id: session, onExisting: 'use', message: 'go' } as const;
  expect(await rejection(sessions.start('spender', { ...again, pool: 'two' }))).toMatchObject({
    code: 'CONFLICT',
    message: `pool: session ${session} shares pool one. Choose another id, or leave the pool out`,
  });
  expect((await sessions.start('spender', { ...again, pool: 'one' })).id).toBe(session);
});

test('a session that was terminated with an allotment: the next one that needs it finds what it has spent', async () => {
  let asked = 0;
  const stage = await openStage(() =>
    asked++ === 0 ? { fault: 'hang' } : { text: 'done', usage: { inputTokens: 10, outputTokens: 200 } },
  );
  await stage.startWorker([agentOf(stage)]);
  const pool = stage.sessions.pool(stage.id('pool'));
  await pool.set({ usd: 9 });
  const first = await stage.sessions.start('spender', { id: stage.id(), message: 'go', pool: pool.id });
  await stage.model.waitFor((requests) => requests.length === 1);
  const { held } = await untilPool(pool, (view) => view.held.usd > 0);
  await pool.set({ usd: held.usd });
  await stage.client.workflow.getHandle(first.id).terminate();
  const second = await stage.sessions.start('spender', { id: stage.id(), message: 'go', pool: pool.id });
  // The request that was lost counts at its worst: 2 dollars.
  expect((await untilPhase(second, 'waiting')).wait?.message).toContain(': 2 spent, 2 needed');
  expect(await pool.get()).toMatchObject({ spent: { usd: 2 }, held: { usd: 0 } });
});

test("a session's caps hold for its sub-agents, too, and raising them lets the one that waits continue", async () => {
  // Each reply costs 2 dollars.
  const usage = { inputTokens: 10, outputTokens: 200 };
  const stage = await openStage(({ model, assistantCount }) =>
    model === 'lead' && assistantCount === 0
      ? { toolCalls: ['Whales', 'Sharks'].map((task) => ({ name: 'research', args: { task } })), usage }
      : { text: 'done', usage },
  );
  const agent = (name: string, tools: Parameters<typeof defineAgent>[0]['tools'] = {}): DefinedAgent =>
    defineAgent({
      name,
      model: { model: stage.provider(name), price: PRICE },
      instructions: 'Work.',
      maxOutputTokens: 200,
      tools,
    });
  await stage.startWorker([agent('lead', { research: agentTool(agent('researcher')) })]);
  const session = await stage.sessions.start('lead', { id: stage.id(), message: 'go', budget: { usd: 5 } });
  const pool = stage.sessions.pool(`tree/${session.id}`);
  // The session has it on record before the request that makes it has arrived.
  const isThere = (): Promise<boolean> => pool.get().then(Boolean, () => false);
  await polled(isThere, () => 'the session has made no pool');
  // The one that waits asks again, and leaves the list for a moment, when the other one has spent.
  const isFull = ({ spent, waiting }: PoolView): boolean => spent.usd === 4 && waiting.length === 1;
  const { limits, spent, waiting } = await untilPool(pool, isFull);
  expect({ limits, spent: spent.usd }).toEqual({ limits: { usd: 5 }, spent: 4 });
  const leaf = stage.sessions.get(waiting[0]?.sessionId ?? '');
  expect((await untilPhase(leaf, 'waiting')).wait?.next).toMatchObject({ action: 'pool', pool: pool.id });
  await session.setBudget({ limits: { usd: 20 } });
  expect((await untilPhase(session, 'idle')).lastText).toBe('done');
  const end = await untilPool(pool, (view) => view.spent.usd === 8 && view.held.usd === 0);
  expect(end.limits).toEqual({ usd: 20 });
  await expectSound(stage, session);
});

/** A lead without caps, its researcher with a cap in dollars, and the researcher's reader. Each reply costs 2 dollars. */
async function threeLevels(usd: number): Promise<{ stage: Stage; session: Session; researcher: Session }> {
  const usage = { inputTokens: 10, outputTokens: 200 };
  const tools: Record<string, string> = { lead: 'research', researcher: 'read' };
  const stage = await openStage(({ model, assistantCount }) => {
    const name = tools[model];
    return name !== undefined && assistantCount === 0
      ? { toolCalls: [{ name, args: { task: 'Whales' } }], usage }
      : { text: 'done', usage };
  });
  const agent = (name: string, more: Partial<Parameters<typeof defineAgent>[0]> = {}): DefinedAgent =>
    defineAgent({
      name,
      model: { model: stage.provider(name), price: PRICE },
      instructions: 'Work.',
      maxOutputTokens: 200,
      ...more,
    });
  const researcherAgent = agent('researcher', {
    budget: { usd },
    tools: { read: agentTool(agent('reader')) },
  });
  await stage.startWorker([agent('lead', { tools: { research: agentTool(researcherAgent) } })]);
  const session = await stage.sessions.start('lead', { id: stage.id(), message: 'go' });
  return { stage, session, researcher: await childOf(stage, session) };
}

test('the caps of a sub-agent hold for its own sub-agents, too, and at its caps it ends', async () => {
  const { stage, session, researcher } = await threeLevels(5);
  await untilPhase(session, 'idle');
  // Its own reply, that of the reader, and no third.
  expect(await researcher.result()).toMatchObject({ status: 'cancelled', turns: 1 });
  const pool = stage.sessions.pool(`tree/${researcher.id}`);
  expect(await pool.get()).toMatchObject({ limits: { usd: 5 }, spent: { usd: 4 }, held: { usd: 0 } });
  const [call] = (await session.calls()).items;
  expect(call?.result).toMatchObject({
    isError: true,
    content: expect.stringContaining('4 spent, 2 needed'),
  });
  await expectSound(stage, session);
});

test('a sub-agent of a sub-agent waits at the caps above it, and goes on when a person raises them', async () => {
  const { stage, session, researcher } = await threeLevels(3);
  const reader = await childOf(stage, researcher);
  const { wait } = await untilPhase(reader, 'waiting');
  expect(wait?.next).toMatchObject({ action: 'pool', pool: `tree/${researcher.id}`, cap: 'usd', atLeast: 4 });
  await researcher.setBudget({ limits: { usd: 6 } });
  await untilPhase(session, 'idle');
  expect(await researcher.result()).toMatchObject({ status: 'completed', text: 'done' });
  await expectSound(stage, session);
});

test('a pool goes on in a new run after a hundred updates, so that a worker without its state soon has it', async () => {
  const stage = await openStage(() => ({ text: 'done' }));
  await stage.startWorker([agentOf(stage)]);
  const pool = stage.sessions.pool(stage.id('pool'));
  await pool.set({ usd: 5, tokens: 1 });
  for (let tokens = 2; tokens <= 250; tokens += 1) await pool.set({ tokens });
  expect(await pool.get()).toMatchObject({ limits: { usd: 5, tokens: 250 } });
  const { historyLength } = await stage.client.workflow.getHandle(poolWorkflowId(pool.id)).describe();
  // An update of its own is five events.
  expect(historyLength).toBeLessThan(600);
});

test('money of a pool stays exact over a rewind, and a fork draws for itself', async () => {
  // Each message is answered for 2 dollars.
  const stage = await openStage(() => ({ text: 'done', usage: { inputTokens: 10, outputTokens: 200 } }));
  await stage.startWorker([agentOf(stage)]);
  const pool = stage.sessions.pool(stage.id('pool'));
  await pool.set({ usd: 9 });
  const session = await stage.sessions.start('spender', { id: stage.id(), message: 'go', pool: pool.id });
  await untilPhase(session, 'idle');
  const checkpointId = (await new TemporalSaver(stage.client).get(session.id))?.id ?? '';
  await session.send('and again');
  await until(session, ({ phase, turn }) => phase === 'idle' && turn === 2);
  const from = { sessionId: session.id, checkpointId };
  const taken = await stage.sessions.rewind(from, { by: 'ada', reason: 'another way', message: 'so' });
  await until(taken, ({ phase, turn }) => phase === 'idle' && turn === 2);
  // What the run that was left has spent is spent.
  const view = await untilPool(pool, ({ spent, held }) => spent.usd === 6 && held.usd === 0);
  expect(view.total.usd).toBe(6);
  expect((await taken.budget()).spent.usd).toBe(6);

  const fork = await stage.sessions.fork(from, {
    id: stage.id('fork'),
    by: 'ada',
    reason: 'try',
    message: 'so',
  });
  await until(fork, ({ phase, turn }) => phase === 'idle' && turn === 2);
  await untilPool(pool, ({ spent, held }) => spent.usd === 8 && held.usd === 0);
  expect([(await fork.budget()).spent.usd, (await taken.budget()).spent.usd]).toEqual([2, 6]);
  // A dollar is left, and each may need two.
  for (const each of [fork, taken]) {
    await each.send('more');
    const { wait } = await untilPhase(each, 'waiting');
    expect(wait?.message).toBe(`usd: pool ${pool.id} has 9 US dollars: 8 spent, 2 needed`);
    await expectSound(stage, each);
  }
});
