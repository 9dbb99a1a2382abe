/** A session's context: typed, checked at the start, and handed to each function of a tool. */
import { expect, test } from 'vitest';
import * as z from 'zod';
import { header } from '../../src/cli/render.ts';
import { Terminal } from '../../src/cli/terminal.ts';
import {
  type DefinedAgent,
  defineAgent,
  defineTool,
  LIMIT,
  type Session,
  TemporalSaver,
} from '../../src/index.ts';
import { decide } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';

const Customer = z.object({ tenant: z.string(), userId: z.string(), locale: z.string().default('en') });
type Customer = z.infer<typeof Customer>;
const given = { tenant: 'acme', userId: 'u-7' };
const read: Customer = { ...given, locale: 'en' };

/** The model asks for a read, then for a mutation whose reply is lost. */
async function desk(): Promise<{ stage: Stage; agent: DefinedAgent; handed: [string, Customer][] }> {
  const stage = await openStage(({ stepInTurn }) =>
    stepInTurn < 2
      ? { toolCalls: [{ name: ['look', 'pay'][stepInTurn] ?? '', args: { order: 'o-1' } }] }
      : { text: 'Done.' },
  );
  const handed: [string, Customer][] = [];
  const inputSchema = z.object({ order: z.string() });
  const look = defineTool({
    context: Customer,
    inputSchema,
    effect: 'read',
    execute: (_, { context }) => handed.push(['read', context]),
  });
  const pay = defineTool({
    context: Customer,
    inputSchema,
    settle: 0,
    idempotency: ({ order }, { context }) => {
      handed.push(['idempotency', context]);
      return `${context.userId} ${order}`;
    },
    needsApproval: (_, { context }) => {
      handed.push(['needsApproval', context]);
      return context.tenant === 'acme';
    },
    execute: (_, { context, experimental_context }) => {
      handed.push(['execute', context], ['AI SDK', experimental_context as Customer]);
      throw new Error('the connection was lost');
    },
    verify: (_, { context }) => {
      handed.push(['verify', context]);
      return { outcome: 'landed', output: 'paid' };
    },
  });
  const agent = defineAgent({
    name: 'desk',
    model: stage.provider('m'),
    instructions: 'Pay.',
    context: Customer,
    tools: { look, pay },
  });
  return { stage, agent, handed };
}

test('each function of a tool is handed the context as the schema reads it, and the model is not told of it', async () => {
  const { stage, agent, handed } = await desk();
  await stage.startWorker([agent]);
  const session = await stage.sessions.start(agent, { id: stage.id(), context: given, message: 'go' });
  const { pending } = await untilPhase(session, 'approval');
  await decide(session, pending[0]?.callId ?? '', { decision: 'approve' });
  expect(await untilPhase(session, 'idle')).toMatchObject({ context: given, lastText: 'Done.' });
  const names = ['read', 'idempotency', 'needsApproval', 'execute', 'AI SDK', 'verify'];
  expect(handed).toEqual(names.map((name) => [name, read]));
  expect(JSON.stringify(stage.model.requests)).not.toContain('u-7');
  await expectFoldEqualsLive(stage.client, session);
});

test('an edited call is checked with the context', async () => {
  const { stage, agent, handed } = await desk();
  await stage.startWorker([agent]);
  const session = await stage.sessions.start(agent, { id: stage.id(), context: given, message: 'go' });
  const { pending } = await untilPhase(session, 'approval');
  handed.length = 0;
  await decide(session, pending[0]?.callId ?? '', { decision: 'edit', args: { order: 'o-2' } });
  await untilPhase(session, 'idle');
  expect(handed[0]).toEqual(['idempotency', read]);
});

test('who has the agent at hand is refused at the start, with the field', async () => {
  const { stage, agent } = await desk();
  const start = (context: object): Promise<Session> =>
    stage.sessions.start(agent, { id: stage.id(), context, message: 'go' });
  expect(await rejection(start({ tenant: 'acme' }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    details: { field: 'context.userId' },
  });
  expect(await rejection(start({ ...given, userId: 'u'.repeat(LIMIT.context) }))).toMatchObject({
    code: 'TOO_LARGE',
    details: { field: 'context', limit: LIMIT.context },
  });
});

test('a session whose context does not fit waits with the field, and goes on once the definition takes it', async () => {
  const { stage, agent, handed } = await desk();
  const { stop } = await stage.startWorker([agent]);
  const session = await stage.sessions.start('desk', {
    id: stage.id(),
    context: { user: 'u-7' },
    message: 'go',
  });
  const { wait, queued } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({ reason: 'context_invalid', next: { action: 'resume' } });
  expect(wait?.message).toContain('context.tenant: ');
  expect(wait?.message).not.toContain('u-7');
  expect(queued).toBe(1);
  await expectFoldEqualsLive(stage.client, session);
  await stop();
  const Lax = z.object({ user: z.string() });
  const look = defineTool({
    context: Lax,
    inputSchema: z.object({}),
    effect: 'read',
    execute: (_, { context }) => handed.push([context.user, read]),
  });
  await stage.startWorker([
    defineAgent({
      name: 'desk',
      model: stage.provider('m'),
      instructions: 'Look.',
      context: Lax,
      tools: { look },
    }),
  ]);
  await session.resume();
  await until(session, ({ turn }) => turn > 0);
  await expect.poll(() => handed).toEqual([['u-7', read]]);
});

test('a call whose tool takes another context by now says so, and not that the tool is missing', async () => {
  const { stage, agent } = await desk();
  const { stop } = await stage.startWorker([agent]);
  const session = await stage.sessions.start('desk', { id: stage.id(), context: given, message: 'go' });
  const { pending } = await untilPhase(session, 'approval');
  await stop();
  const pay = defineTool({
    context: Customer.extend({ limit: z.number() }),
    inputSchema: z.object({ order: z.string() }),
    execute: () => 'paid',
  });
  await stage.startWorker([{ ...agent, tools: { ...agent.tools, pay: pay as never } }]);
  await decide(session, pending[0]?.callId ?? '', { decision: 'approve' });
  const stuck = await untilPhase(session, 'unknown_effect');
  expect(stuck.pending).toMatchObject([
    { status: { kind: 'stuck', misfit: true, reason: expect.stringContaining('context.limit: ') } },
  ]);
  const shown = header(stuck, new Terminal());
  expect(shown).toContain('its context does not fit the tool pay');
  expect(shown).not.toContain('has the tool');
  await expectFoldEqualsLive(stage.client, session);
});

test('a start names a field of the context whose name has a colon', async () => {
  const { stage } = await desk();
  const context = z.object({ 'a: b': z.string() });
  const agent = defineAgent({ name: 'odd', model: 'scripted', instructions: 'Pay.', context });
  expect(await rejection(stage.sessions.start(agent, { context: {} as never }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    details: { field: 'context.a: b' },
  });
});

test('a session that waits for a context that fits is rewound with one', async () => {
  const { stage, agent } = await desk();
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('desk', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'waiting');
  const checkpointId = await latestOf(stage, session);
  const back = await stage.sessions.rewind(
    { sessionId: session.id, checkpointId },
    { by: 'ada', reason: 'it had no context', context: given },
  );
  expect(await untilPhase(back, 'approval')).toMatchObject({ context: given });
});

test('a fork and a rewind keep the context', async () => {
  const { stage, agent, handed } = await desk();
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('desk', { id: stage.id(), context: given, message: 'go' });
  await untilPhase(session, 'approval');
  const checkpointId = await latestOf(stage, session);
  const from = { sessionId: session.id, checkpointId };
  for (const how of ['fork', 'rewind'] as const) {
    handed.length = 0;
    const after = await stage.sessions[how](from, { by: 'ada', reason: 'again' });
    const { context, pending } = await untilPhase(after, 'approval');
    expect(context).toEqual(given);
    await decide(after, pending[0]?.callId ?? '', { decision: 'approve' });
    await untilPhase(after, 'idle');
    expect(handed.at(-1)).toEqual(['verify', read]);
    await expectFoldEqualsLive(stage.client, after);
  }
});

test('a running session of another context is not used for a message', async () => {
  const { stage, agent } = await desk();
  await stage.startWorker([agent]);
  const id = stage.id();
  await stage.sessions.start('desk', { id, context: given, message: 'go' });
  const use = (context?: object): Promise<Session> =>
    stage.sessions.start('desk', {
      id,
      message: 'and',
      onExisting: 'use',
      ...(context ? { context } : {}),
    });
  expect(await rejection(use({ ...given, tenant: 'umbrella' }))).toMatchObject({
    code: 'CONFLICT',
    details: { field: 'context' },
  });
  await use({ userId: 'u-7', tenant: 'acme' });
  await use();
});

test('a rewound or forked session keeps its context, and is not used for a message of another one', async () => {
  const { stage, agent } = await desk();
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('desk', { id: stage.id(), context: given, message: 'go' });
  await untilPhase(session, 'approval');
  const from = { sessionId: session.id, checkpointId: await latestOf(stage, session) };
  for (const how of ['fork', 'rewind'] as const) {
    const { id } = await stage.sessions[how](from, { by: 'ada', reason: 'again' });
    const use = (context: object): Promise<Session> =>
      stage.sessions.start('desk', { id, message: 'and', onExisting: 'use', context });
    expect(await rejection(use({ ...given, tenant: 'umbrella' }))).toMatchObject({
      code: 'CONFLICT',
      details: { field: 'context' },
    });
    await use(given);
  }
});

test('a tenant is a text, taken as it is given', async () => {
  const agent = defineAgent({
    name: 'desk',
    model: 'scripted',
    instructions: 'Pay.',
    context: z.object({ tenant: z.string().default('acme') }),
  });
  expect(await agent.contextProblem({})).toMatchObject({
    field: 'context.tenant',
    problem: expect.stringContaining('its schema must not have a default'),
  });
  expect(await agent.contextProblem({ tenant: 'acme' })).toBeNull();
});

async function latestOf({ client }: Stage, { id }: Session): Promise<string> {
  const [latest] = await new TemporalSaver(client).list(id, { limit: 1 });
  return latest?.id ?? '';
}
