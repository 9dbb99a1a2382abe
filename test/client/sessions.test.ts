import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  defineAgent,
  defineTool,
  type JsonObject,
  type Message,
  type Session,
  Sessions,
} from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { decide, resolve } from '../support/decide.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';

async function echo(): Promise<Stage> {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  await stage.startWorker([
    defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Say what you heard.' }),
  ]);
  return stage;
}

async function listed(sessions: Sessions, options: Parameters<Sessions['list']>[0]): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of sessions.list(options)) ids.push(id);
  return ids;
}

test('an id that exists is refused, or its running session is used and takes the message', async () => {
  const stage = await echo();
  const id = stage.id();
  const first = await stage.sessions.start('echo', { id, message: 'one' });
  await untilPhase(first, 'idle');
  expect(await rejection(stage.sessions.start('echo', { id, message: 'two' }))).toMatchObject({
    code: 'SESSION_EXISTS',
    message: expect.stringContaining(`id: session ${id} exists. Choose another id, or set onExisting: 'use'`),
  });
  expect((await first.state()).messages).toBe(2);

  const same = await stage.sessions.start('echo', { id, message: 'two', onExisting: 'use' });
  await until(same, ({ lastText }) => lastText === 'heard two');
  expect((await same.state()).runId).toBe((await first.state()).runId);
  // Without a message it is only taken; and a message of an id is taken once, however often it is started.
  await stage.sessions.start('echo', { id, onExisting: 'use' });
  for (let i = 0; i < 3; i++) {
    await stage.sessions.start('echo', { id, message: { text: 'three', id: 'm3' }, onExisting: 'use' });
  }
  await until(same, ({ lastText, phase }) => lastText === 'heard three' && phase === 'idle');
  expect((await same.state()).messages).toBe(6);
  await expectSound(stage, same);

  await same.cancel({ by: 'ada' });
  await same.result();
  for (const onExisting of ['fail', 'use'] as const) {
    expect(await rejection(stage.sessions.start('echo', { id, message: 'four', onExisting }))).toMatchObject({
      code: 'SESSION_EXISTS',
      message: `id: session ${id} has ended. Choose another id, or rewind it`,
    });
  }
});

test('a session of another agent is not used: its message was meant for others', async () => {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  await stage.startWorker(
    ['echo', 'other'].map((name) =>
      defineAgent({ name, model: stage.provider('m'), instructions: 'Say it.' }),
    ),
  );
  const id = stage.id();
  const session = await stage.sessions.start('echo', { id, message: 'one' });
  await untilPhase(session, 'idle');
  for (const options of [{ message: 'two' }, {}]) {
    expect(
      await rejection(stage.sessions.start('other', { id, ...options, onExisting: 'use' })),
    ).toMatchObject({
      code: 'CONFLICT',
      message: `id: session ${id} belongs to agent echo, not to other. Choose another id, or start it with echo`,
      details: { field: 'id' },
    });
  }
  expect(await session.state()).toMatchObject({ agent: 'echo', messages: 2, queued: 0 });
});

test('a session that is used keeps its mode, caps and folder, and refuses other ones', async () => {
  const stage = await echo();
  const id = stage.id();
  const start = { id, message: { text: 'one', id: 'm1' }, onExisting: 'use' } as const;
  const own = { mode: 'chat', budget: { tokens: 9_000, turns: 9 }, scratchpadRoot: '/pad' } as const;
  const session = await stage.sessions.start('echo', { ...start, ...own });
  const rows = [
    [{ mode: 'task' }, 'mode'],
    [{ budget: { tokens: 9_000, turns: 10 } }, 'budget.turns'],
    [{ budget: { toolCalls: 5 } }, 'budget.toolCalls'],
    [{ scratchpadRoot: '/other' }, 'scratchpadRoot'],
  ] as const;
  for (const [options, field] of rows) {
    expect(await rejection(stage.sessions.start('echo', { ...start, ...options }))).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining(`${field}: session ${id} exists, and has`),
      details: { field },
    });
  }
  // The same start again happens once.
  await stage.sessions.start('echo', { ...start, ...own });
  await untilPhase(session, 'idle');
  await stage.sessions.start('echo', { ...start, ...own });
  expect((await session.state()).messages).toBe(2);
});

test('a session that is started with onExisting use and does not exist begins with its message', async () => {
  const stage = await echo();
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'one', onExisting: 'use' });
  await until(session, ({ lastText }) => lastText === 'heard one');
  expect((await session.state()).messages).toBe(2);
  await expectSound(stage, session);
});

test.each<[string, unknown]>([
  ['empty', ''],
  ['blank', ' \t\n'],
  ['too long', 'i'.repeat(201)],
  ['a number', 42],
  ['null', null],
  ['an object', { id: 'x' }],
])('an id that is %s is refused before anything is sent', async (_, id) => {
  // Nothing listens there: an error of the server would be another.
  const sessions = new Sessions(new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) }));
  const refused = {
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/^id: .* is not an id: write 1 to 200 characters/s),
  };
  expect(await rejection(sessions.start('echo', { id: id as string }))).toMatchObject(refused);
  expect(() => sessions.get(id as string)).toThrow(expect.objectContaining(refused));
});

test.each<[string, object, string]>([
  ['an empty message', { message: '' }, 'message.text: text is empty'],
  ['a message that is no text', { message: 5 }, 'message: expected object'],
  ['an unknown mode', { mode: 'batch' }, 'mode: expected one of "chat", "task"'],
  ['a negative cap', { budget: { turns: -1 } }, 'budget.turns: '],
  ['half a turn', { budget: { turns: 0.5 } }, 'budget.turns: '],
  ['a cap that is not a number', { budget: { usd: Number.NaN } }, 'budget.usd is NaN'],
  ['a tenant that is no text', { context: { tenant: 7 } }, 'context.tenant: expected a string'],
  [
    'a tenant too long to be searched for',
    { context: { tenant: 't'.repeat(201) } },
    'context.tenant: expected a string of 1 to 200',
  ],
  ['a cap with a slip in its name', { budget: { USD: 2 } }, 'budget.USD: is unknown. Known names: turns, '],
  [
    'a message with one',
    { message: { text: 'x', modus: 'queue' } },
    'message.modus: is unknown. Known names: ',
  ],
  ['an option with one', { bugdet: { usd: 2 } }, 'bugdet: is unknown. Known names: id, message, '],
  ['an agent name too long to be one', { agent: 'a'.repeat(65) }, 'agent: the maximum is 64'],
])('%s is refused before anything is sent', async (_, options, message) => {
  const sessions = new Sessions(new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) }));
  const { agent = 'echo', ...rest } = options as { agent?: string };
  const error = await rejection(sessions.start(agent, rest));
  expect(['INVALID_ARGUMENT', 'NOT_JSON']).toContain((error as { code: string }).code);
  expect((error as Error).message).toContain(message);
});

test('a name that is not known is refused before anything is sent, wherever it is given', async () => {
  const sessions = new Sessions(new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) }));
  const session = sessions.get('s');
  const from = { sessionId: 's', checkpointId: `${randomUUID()}:4` };
  const on = { agent: 'echo', by: 'ada', reason: 'why' };
  // A caller in JavaScript has no compiler to say it.
  const slip = (fields: object): never => fields as never;
  const odd = JSON.parse('{"__proto__":{"b":1},"c":2}') as JsonObject;
  const said: Message = {
    id: 'm',
    role: 'user',
    created_at: '2026-01-01T00:00:00.000Z',
    blocks: [{ kind: 'text', text: 'x', metadata: odd }],
  };
  const seen = { callId: 'c', argsDigest: 'd', dispatchNo: 1 };
  const calls: [call: () => Promise<unknown>, message: string][] = [
    [
      () => session.send(slip({ text: 'x', modus: 'queue' })),
      'modus: is unknown. Known names: text, blocks, id, ',
    ],
    [
      () => session.decide(seen, { decision: 'approve' }, slip({ argsDiggest: 'd' })),
      'argsDiggest: is unknown',
    ],
    [
      () => session.decide(seen, slip({ decision: 'reject', raeson: 'no' })),
      'decision.raeson: is unknown. Known names: decision, reason',
    ],
    [
      () => session.resolve(seen, slip({ outcome: 'absent', output: 1 })),
      'resolution.output: is unknown. Known names: outcome',
    ],
    [() => session.setBudget(slip({ limits: { USD: 2 } })), 'limits.USD: is unknown. Known names: turns, '],
    [() => session.edit(slip({ transcirpt: {} })), 'transcirpt: is unknown. Known names: transcript, '],
    [() => session.seal(slip({ now: true })), 'now: is unknown. Known names: by, reason'],
    [() => session.pause(slip({ nwo: true })), 'nwo: is unknown. Known names: by, reason, now'],
    [() => session.resume(slip({ reason: 'x' })), 'reason: is unknown. Known names: by'],
    [
      () => session.cancel(slip({ raeson: 'x' })),
      'raeson: is unknown. Known names: by, verified, reason, undo',
    ],
    [() => sessions.fork(from, slip({ ...on, onExisting: 'use' })), 'onExisting: is unknown. Known names: '],
    [
      () => sessions.fork(from, slip({ ...on, edits: { plans: [] } })),
      'edits.plans: is unknown. Known names: transcript, plan, ',
    ],
    [
      () => sessions.rewind(from, slip({ ...on, budget: { USD: 2 } })),
      'budget.USD: is unknown. Known names: ',
    ],
    // A key that JSON may have, and a copy of it would lose.
    [
      () => session.decide(seen, { decision: 'edit', args: odd }),
      'decision.args.__proto__: is a reserved name',
    ],
    [
      () => session.decide(seen, { decision: 'respond', output: [[odd]] }),
      'decision.output.0.0.__proto__: is a reserved name',
    ],
    [
      () => session.resolve(seen, { outcome: 'landed', output: { a: odd } }),
      'resolution.output.a.__proto__: is a reserved name',
    ],
    [
      () => session.edit({ transcript: { from: 0, messages: [said] } }),
      'transcript.messages.0.blocks.0.metadata.__proto__: is a reserved name',
    ],
    [
      () => sessions.fork(from, { ...on, edits: { transcript: { from: 0, messages: [said] } } }),
      'edits.transcript.messages.0.blocks.0.metadata.__proto__: is a reserved name',
    ],
    // What starts with a session is checked whole, values too.
    [() => sessions.start('echo', { budget: { usd: -1 } }), 'budget.usd: the minimum is 0'],
    [() => sessions.fork(from, slip({ ...on, edits: { plan: 5 } })), 'edits.plan: expected array'],
    [() => sessions.rewind(from, slip({ ...on, by: 5 })), 'by: expected string'],
  ];
  for (const [call, message] of calls) {
    const field = message.slice(0, message.indexOf(':'));
    expect(await rejection(call())).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(new RegExp(`^${message}`)),
      details: { field },
    });
  }
});

test('ids that mean something to a shell, a query or a path are only ids', async () => {
  const stage = await echo();
  for (const name of ["o'brien", '../../etc', '{x:1}', 'ünïcödé ✓', "x' OR '1'='1"]) {
    const session = await stage.sessions.start('echo', {
      id: stage.id(name),
      message: 'hi',
      context: { tenant: name },
    });
    await until(session, ({ lastText }) => lastText === 'heard hi');
    expect((await session.state()).sessionId).toBe(session.id);
    await expect.poll(() => listed(stage.sessions, { tenant: name })).toContain(session.id);
  }
  // The server's own store does not find what has a quotation mark or a backslash.
  for (const name of ['back\\slash', '{"x":1}']) {
    const start = stage.sessions.start('echo', { id: stage.id(name), message: 'hi' });
    expect(await rejection(start)).toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'id' } });
  }
});

test('what is asked of a session that is not there, or is closed, says so', async () => {
  const stage = await echo();
  const none = stage.sessions.get(stage.id('none'));
  const notFound = {
    code: 'SESSION_NOT_FOUND',
    message: `There is no session ${none.id}`,
  };
  expect(await rejection(none.state())).toMatchObject(notFound);
  expect(await rejection(none.send('hi'))).toMatchObject(notFound);
  expect(await rejection(none.pause())).toMatchObject(notFound);
  expect(await rejection(none.cancel())).toMatchObject(notFound);
  expect(await rejection(none.result())).toMatchObject(notFound);
  expect(await rejection(none.stream().next())).toMatchObject(notFound);

  const closed = await stage.sessions.start('echo', { id: stage.id(), message: 'one', mode: 'task' });
  expect(await closed.result()).toEqual({ status: 'completed', text: 'heard one', turns: 1 });
  const isClosed = { code: 'SESSION_CLOSED' };
  expect(await rejection(closed.send('two'))).toMatchObject(isClosed);
  expect(await rejection(decide(closed, 'call_1_0', { decision: 'approve' }))).toMatchObject(isClosed);
  expect(await rejection(closed.setBudget({ limits: { usd: 1 } }))).toMatchObject(isClosed);
  expect(await rejection(closed.pause())).toMatchObject(isClosed);
  expect(await rejection(closed.resume())).toMatchObject(isClosed);
  expect(await rejection(closed.cancel())).toMatchObject(isClosed);
  // It can still be looked at.
  expect(await closed.state()).toMatchObject({
    phase: 'closed',
    status: { kind: 'completed', text: 'heard one' },
  });
  await expectSound(stage, closed);
});

test('a server that is not there says so, in time', async () => {
  const client = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1', connectTimeout: 500 }) });
  const sessions = new Sessions(client);
  const unavailable = { code: 'SERVER_UNAVAILABLE', message: expect.stringContaining('cannot be reached') };
  const session = sessions.get('some');
  const asked = [
    sessions.start('echo', { message: 'hi' }),
    session.state(),
    sessions.list().next(),
    session.send('hi'),
    session.pause(),
  ];
  for (const error of await Promise.all(asked.map(rejection))) expect(error).toMatchObject(unavailable);
}, 60_000);

test('with no worker a session is started and told things, and what needs an answer fails within its bound', async () => {
  const stage = await openStage(() => ({ text: 'late' }));
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'one' });
  const noWorker = { code: 'NO_WORKER', message: expect.stringContaining('No worker') };
  expect(await session.state()).toMatchObject({ phase: 'starting', queued: 1 });
  const send = await rejection(session.send('two'));
  expect(send).toMatchObject(noWorker);
  await session.pause({ by: 'ada' });

  await stage.startWorker([
    defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Be late.' }),
  ]);
  expect(await untilPhase(session, 'paused')).toMatchObject({ paused: { by: 'ada' } });
  await session.resume();
  await untilPhase(session, 'idle');
  await expectSound(stage, session);
}, 60_000);

test('a decision on a call that is unknown, finished or changed is refused, and the first one wins', async () => {
  const stage = await openStage(
    scriptedTurns([
      { toolCalls: [{ name: 'pay', args: { cents: 5 } }] },
      ({ toolResults }) => ({ text: toolResults[0]?.text ?? '' }),
    ]),
  );
  const pay = defineTool({
    inputSchema: z.object({ cents: z.number().int().max(100) }),
    needsApproval: true,
    execute: ({ cents }) => `paid ${cents}`,
  });
  await stage.startWorker([
    defineAgent({ name: 'clerk', model: stage.provider('m'), instructions: 'Pay.', tools: { pay } }),
  ]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'pay' });
  const { pending } = await untilPhase(session, 'approval');
  const digest = pending[0]?.argsDigest ?? '';

  expect(await rejection(decide(session, 'call_9_9', { decision: 'approve' }))).toMatchObject({
    code: 'UNKNOWN_CALL',
    message: `callId: session ${session.id} has no call call_9_9; waiting for approval: call_1_0`,
    details: { callId: 'call_9_9', pending: ['call_1_0'] },
  });
  const other = { callId: 'call_1_0', argsDigest: 'f'.repeat(64) };
  expect(await rejection(session.decide(other, { decision: 'approve' }))).toMatchObject({
    code: 'DIGEST_MISMATCH',
    message: expect.stringContaining(digest),
    details: { callId: 'call_1_0', argsDigest: digest },
  });
  expect(await rejection(resolve(session, 'call_1_0', { outcome: 'absent' }))).toMatchObject({
    code: 'CALL_NOT_PENDING',
    details: { callId: 'call_1_0', status: 'approval', resolutions: [] },
  });
  expect(
    await rejection(decide(session, 'call_1_0', { decision: 'edit', args: { cents: 101 } })),
  ).toMatchObject({
    code: 'INVALID_TOOL_INPUT',
    message: expect.stringMatching(/^args of call_1_0: .*cents: /),
    details: { field: 'args', callId: 'call_1_0' },
  });
  expect(
    await rejection(decide(session, 'call_1_0', { decision: 'edit', args: { cents: 1n } as never })),
  ).toMatchObject({
    code: 'NOT_JSON',
  });
  // The edit that was refused has changed nothing: what was looked at is still what is decided on.
  expect(await session.approvals()).toMatchObject([
    { args: { cents: 5 }, argsDigest: digest, status: { problem: expect.stringContaining('cents: ') } },
  ]);
  const edits = [
    decide(session, 'call_1_0', { decision: 'edit', args: { cents: 7 } }, { by: 'ada' }),
    decide(session, 'call_1_0', { decision: 'reject' }, { by: 'bob' }),
  ];
  const [first, second] = await Promise.allSettled(edits);
  expect(first?.status).not.toBe(second?.status);
  const loser = first?.status === 'rejected' ? first : (second as PromiseRejectedResult);
  expect(loser.reason).toMatchObject({ code: 'CALL_NOT_PENDING' });
  await untilPhase(session, 'idle');
  expect(await rejection(decide(session, 'call_1_0', { decision: 'approve' }))).toMatchObject({
    code: 'CALL_NOT_PENDING',
    message: expect.stringMatching(/^call call_1_0 is already decided: (edit by ada|reject by bob) at /),
    details: { callId: 'call_1_0', decision: { by: first === loser ? 'bob' : 'ada' } },
  });
  // Only the session can say what it has, and what it does not take.
  const { from, digest: seen } = { from: 9, digest: 'f'.repeat(32) };
  const refused: [edit: Parameters<Session['edit']>[0], code: string, details: object][] = [
    [{ transcript: { from, messages: [] } }, 'INVALID_ARGUMENT', { field: 'transcript.from', messages: 4 }],
    [{ transcript: { from: 2, messages: [] } }, 'INVALID_ARGUMENT', { field: 'transcript' }],
    [
      { plan: [], digest: seen },
      'SESSION_BUSY',
      { field: 'digest', digest: (await session.snapshot()).position.digest },
    ],
    [{ plan: [{ id: '' }] } as never, 'INVALID_ARGUMENT', { field: 'plan.0.id' }],
  ];
  for (const [edit, code, details] of refused)
    expect(await rejection(session.edit(edit))).toMatchObject({ code, details });
  expect(await rejection(session.setBudget({ limits: { usd: 1 } }))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    details: { field: 'limits.usd' },
  });
  expect(await rejection(session.setBudget({}))).toMatchObject({ details: { field: 'limits' } });
  await expectSound(stage, session);
});
