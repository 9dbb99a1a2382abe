import { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { effectsKept } from '../../src/checkpoints/effects-left.ts';
import { foldHistory } from '../../src/history/index.ts';
import {
  type Checkpoint,
  type DefinedAgent,
  defineAgent,
  defineTool,
  type EffectSince,
  effectsSince,
  type Session,
  type SessionState,
  Sessions,
  TemporalSaver,
  type ToolCall,
} from '../../src/index.ts';
import { parseCheckpointId } from '../../src/temporal/checkpoint-id.ts';
import { readPages } from '../../src/temporal/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { decide, resolve } from '../support/decide.ts';
import { expectFoldEqualsLive } from '../support/fold.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';

interface Sent {
  to: string;
  key: string;
}

/** An agent that writes to everybody whom the user names, one mail a turn. */
function mailer(stage: Stage, sent: Sent[]): DefinedAgent {
  return defineAgent({
    name: 'mailer',
    model: stage.provider('scripted'),
    instructions: 'Send mail.',
    tools: {
      mail: defineTool({
        inputSchema: z.object({ to: z.string() }),
        needsApproval: ({ to }) => to.startsWith('boss'),
        execute: ({ to }, { idempotencyKey }) => {
          sent.push({ to, key: idempotencyKey });
          return `sent to ${to}`;
        },
      }),
    },
  });
}

/** Sends one mail for each message of the user, then says so. */
const openMailStage = (): Promise<Stage> =>
  openStage(({ lastUserText, stepInTurn }) =>
    stepInTurn === 0
      ? { toolCalls: [{ name: 'mail', args: { to: lastUserText } }] }
      : { text: `wrote ${lastUserText}` },
  );

/** The checkpoints of a session's present run, oldest first, with what tests choose them by. */
async function checkpoints(
  stage: Stage,
  session: Session,
): Promise<{ id: string; text: string; phase: string }[]> {
  const found: { id: string; text: string; phase: string }[] = [];
  const { runId } = await session.state();
  await foldHistory(readPages(stage.client, { workflowId: session.id, runId }), stage.client.options, {
    runId,
    onTask: ({ eventId, state }) => {
      const last = state.transcript.at(-1)?.blocks[0];
      const waiting = state.calls.some(({ status }) => status.kind === 'approval');
      const text = last?.kind === 'text' ? last.text : '';
      found.push({
        id: `${runId}:${eventId}`,
        text,
        phase: waiting ? 'approval' : state.inFlight.length > 0 ? 'busy' : 'rest',
      });
    },
  });
  return found;
}

/** What waits until it is opened, for now closed. */
function closed(): { passed: () => Promise<void>; open: () => void; close: () => void } {
  let open = (): void => undefined;
  let passing = Promise.resolve();
  const close = (): void => {
    passing = new Promise((resolve) => {
      open = resolve;
    });
  };
  close();
  return { passed: () => passing, open: () => open(), close };
}

async function say(session: Session, text: string): Promise<void> {
  await session.send(text);
  await untilPhase(session, 'idle', 'approval');
}

test('a rewound session goes on from the checkpoint, and what happened after it is answered from the record', async () => {
  const stage = await openMailStage();
  const sent: Sent[] = [];
  await stage.startWorker([mailer(stage, sent)]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'ann' });
  await untilPhase(session, 'idle');
  const afterAnn = (await checkpoints(stage, session)).findLast(({ text }) => text === 'wrote ann');
  await say(session, 'ben');
  const before = await session.state();
  expect(sent.map(({ to }) => to)).toEqual(['ann', 'ben']);
  // What it will not undo can be looked at first.
  const saver = new TemporalSaver(stage.client);
  const [then, now] = [
    await saver.get(session.id, { checkpointId: afterAnn?.id ?? '' }),
    await saver.get(session.id),
  ];
  expect(then === null || now === null ? null : await effectsSince(stage.client, then, now)).toMatchObject([
    { tool: 'mail', again: 'answered', args: { to: 'ben' }, output: 'sent to ben' },
  ]);

  await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: afterAnn?.id ?? '' },
    { agent: 'mailer', by: 'ada', reason: 'ben was a mistake', message: 'ben' },
  );
  const rewound = await untilPhase(session, 'idle');

  expect(rewound.runId).not.toBe(before.runId);
  expect(sent.map(({ to }) => to)).toEqual(['ann', 'ben']);
  const { items: calls } = await session.calls();
  expect(calls.map(({ args, replayOf }) => [args, replayOf])).toEqual([
    [{ to: 'ann' }, null],
    [{ to: 'ben' }, calls[1]?.id],
  ]);
  expect(calls[1]?.result?.content).toMatch(
    /^\[idempotent replay of call_\d+_0\] mail was not executed: .* before the session was rewound.*\nsent to ben$/,
  );
  // What the discarded turns cost is spent all the same.
  expect(rewound.budget.spent.turns).toBe(before.budget.spent.turns + 2);
  expect(rewound.notices).toContainEqual(expect.objectContaining({ kind: 'rewind' }));
  await expectFoldEqualsLive(stage.client, session);
});

test('a session that is rewound again and again answers from the record what any of its runs has done', async () => {
  const stage = await openMailStage();
  const sent: Sent[] = [];
  const worker = await stage.startWorker([mailer(stage, sent)]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'ann' });
  await untilPhase(session, 'idle');
  const afterAnn = (await checkpoints(stage, session)).findLast(({ text }) => text === 'wrote ann');
  await say(session, 'ben');
  const afterBen = (await checkpoints(stage, session)).findLast(({ text }) => text === 'wrote ben');
  const to = async (checkpoint: string | undefined, message: string): Promise<void> => {
    await stage.sessions.rewind(
      { sessionId: session.id, checkpointId: checkpoint ?? '' },
      { agent: 'mailer', by: 'ada', reason: 'again', message },
    );
    await untilPhase(session, 'idle');
  };
  const record = async (): Promise<string[]> =>
    (await session.calls()).items.map(
      ({ args, replayOf }) => `${(args as { to: string }).to}${replayOf === null ? '' : ' again'}`,
    );

  // The second run does something of its own, which the third leaves behind as well as what the first has done.
  await to(afterAnn?.id, 'cat');
  expect(sent.map((mail) => mail.to)).toEqual(['ann', 'ben', 'cat']);
  await to(afterAnn?.id, 'cat');
  await say(session, 'ben');
  expect(await record()).toEqual(['ann', 'cat again', 'ben again']);
  // Onto the branch that the first rewind left: what the later runs have done is answered there, too.
  await to(afterBen?.id, 'cat');
  await say(session, 'dan');
  expect(await record()).toEqual(['ann', 'ben', 'cat again', 'dan']);
  await expectFoldEqualsLive(stage.client, session);

  // A run that was left before any worker had taken it stands for what it would have gone on from.
  await stage.client.workflow.getHandle(session.id).terminate('a person at work');
  await worker.stop();
  const from = { sessionId: session.id, checkpointId: afterAnn?.id ?? '' };
  const options = { agent: 'mailer', by: 'ada', reason: 'again', message: 'dan' };
  await stage.sessions.rewind(from, options);
  await stage.client.workflow.getHandle(session.id).terminate('a person at work');
  await stage.sessions.rewind(from, options);
  await stage.startWorker([mailer(stage, sent)]);
  await untilPhase(session, 'idle');
  expect(await record()).toEqual(['ann', 'dan again']);
  expect(sent.map((mail) => mail.to)).toEqual(['ann', 'ben', 'cat', 'dan']);
});

test('a fork has keys of its own, and asks again for what waited for approval', async () => {
  const stage = await openMailStage();
  const sent: Sent[] = [];
  await stage.startWorker([mailer(stage, sent)]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'boss' });
  await untilPhase(session, 'approval');
  const waiting = (await checkpoints(stage, session)).findLast(({ phase }) => phase === 'approval');

  const from = { sessionId: session.id, checkpointId: waiting?.id ?? '' };
  const why = { by: 'ada', reason: 'what if' };
  for (const verb of ['fork', 'rewind'] as const) {
    // Its tools are not those of another agent, whatever that one is called.
    expect(await rejection(stage.sessions[verb](from, { ...why, agent: 'dry-run' }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: { field: 'agent' },
    });
  }
  const fork = await stage.sessions.fork(from, { id: stage.id('fork'), ...why });
  const forked = await untilPhase(fork, 'approval');
  const [pending] = forked.pending;
  expect(pending?.idempotencyKey).not.toBe((await session.approvals())[0]?.idempotencyKey);
  await decide(fork, pending?.callId ?? '', { decision: 'approve' });
  await untilPhase(fork, 'idle');
  await decide(session, pending?.callId ?? '', { decision: 'approve' });
  await untilPhase(session, 'idle');

  expect(new Set(sent.map(({ key }) => key)).size).toBe(2);
  await expectFoldEqualsLive(stage.client, fork);
});

test('a fork with edits goes on from what they made of the past, and its origin keeps its own', async () => {
  const stage = await openMailStage();
  await stage.startWorker([mailer(stage, [])]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'ann' });
  await untilPhase(session, 'idle');
  const [latest] = await new TemporalSaver(stage.client).list(session.id, { limit: 1 });
  const { transcript } = await session.snapshot();
  const [first] = transcript;
  if (first === undefined) throw new Error('the session has no message');

  const fork = await stage.sessions.fork(
    { sessionId: session.id, checkpointId: latest?.id ?? '' },
    {
      agent: 'mailer',
      by: 'ada',
      reason: 'it was meant for somebody else',
      edits: {
        transcript: {
          from: 0,
          messages: [{ ...first, blocks: [{ kind: 'text', text: 'eve' }] }, ...transcript.slice(1)],
        },
      },
      message: 'ben',
    },
  );
  await untilPhase(fork, 'idle');

  const texts = JSON.stringify(stage.model.requests.at(-1)?.request.messages);
  expect(texts).toContain('eve');
  expect(texts).toContain('ben');
  expect((await session.snapshot()).transcript).toEqual(transcript);
  await expectFoldEqualsLive(stage.client, fork);
});

test('a fork that cannot begin as it was asked to waits for a person: with its edits, or under its cap', async () => {
  const stage = await openMailStage();
  const sent: Sent[] = [];
  await stage.startWorker([mailer(stage, sent)]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'boss' });
  await untilPhase(session, 'approval');
  const { transcript } = await session.snapshot();
  const latest = (await checkpoints(stage, session)).at(-1)?.id ?? '';
  const from = { sessionId: session.id, checkpointId: latest };
  const why = { agent: 'mailer', by: 'ada', reason: 'what if' } as const;
  const edits = { transcript: { from: 0, messages: transcript } };
  const edited = await stage.sessions.fork(from, { ...why, id: stage.id('edited'), edits });
  await until(edited, ({ notices }) => notices.some(({ kind }) => kind === 'edit_refused'));
  expect(await edited.snapshot()).toMatchObject({
    paused: { by: 'ada', reason: expect.stringContaining('the edits of the fork were refused: ') },
  });
  await edited.resume({ by: 'ada' });
  await untilPhase(edited, 'approval');
  await expectFoldEqualsLive(stage.client, edited);

  const capped = await stage.sessions.fork(from, { ...why, id: stage.id('capped'), budget: { usd: 1 } });
  const { wait } = await untilPhase(capped, 'waiting');
  expect(wait).toMatchObject({ reason: 'budget', message: expect.stringContaining('has no price') });
  await expectFoldEqualsLive(stage.client, capped);
  expect(sent).toEqual([]);
});

test('a fork of a checkpoint at which its session had not taken over its own past waits, and names the one to choose', async () => {
  const stage = await openMailStage();
  await stage.startWorker([mailer(stage, [])]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'ann' });
  await untilPhase(session, 'idle');
  const latest = (await checkpoints(stage, session)).at(-1)?.id ?? '';
  const fork = await stage.sessions.fork(
    { sessionId: session.id, checkpointId: latest },
    { id: stage.id('fork'), agent: 'mailer', by: 'ada', reason: 'what if', message: 'ben' },
  );
  await untilPhase(fork, 'idle');

  const [loading] = await checkpoints(stage, fork);
  const again = await stage.sessions.fork(
    { sessionId: fork.id, checkpointId: loading?.id ?? '' },
    { id: stage.id('again'), agent: 'mailer', by: 'ada', reason: 'what if', message: 'ben' },
  );
  const { wait } = await untilPhase(again, 'waiting', 'idle');
  expect(wait).toMatchObject({
    reason: 'history_unreadable',
    message: `session ${fork.id} had not started at this checkpoint. Choose a later one, or the one that it continues from, ${latest} of ${session.id}`,
  });
  await expectFoldEqualsLive(stage.client, again);
});

test('an approval whose time had run out is asked for anew when a session is taken back to it', async () => {
  const stage = await openMailStage();
  const sent: Sent[] = [];
  const agent = mailer(stage, sent);
  const { mail } = agent.tools;
  if (mail === undefined) throw new Error('the mailer has no mail');
  const approval = { expires: '2s', onExpiry: 'reject' } as const;
  await stage.startWorker([{ ...agent, tools: { mail: { ...mail, approval } } }]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'boss' });
  await untilPhase(session, 'approval');
  const then = (await checkpoints(stage, session)).findLast(({ phase }) => phase === 'approval');
  const [former] = await session.approvals();
  // Nobody decides.
  const { runId } = await untilPhase(session, 'idle');
  await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: then?.id ?? '' },
    { agent: 'mailer', by: 'ada', reason: 'look again' },
  );
  await until(session, (view) => view.runId !== runId && view.phase === 'idle');
  const asked = (await new TemporalSaver(stage.client).list(session.id, { limit: 100 })).flatMap(
    ({ id, state }) =>
      id.startsWith(runId) ? [] : (state as unknown as SessionState).calls.map(({ status }) => status),
  );
  const expiries = asked.flatMap((status) => (status.kind === 'approval' ? [status.expiresAt] : []));
  expect(expiries).not.toEqual([]);
  expect(former?.status.kind === 'approval' ? former.status.expiresAt : null).toEqual(expect.any(String));
  for (const expiresAt of expiries) expect(former?.status).not.toMatchObject({ expiresAt });
  expect(sent).toEqual([]);
  await expectFoldEqualsLive(stage.client, session);
});

test('what is sent to a session that is being taken back is refused, and taken when it goes on', async () => {
  const stage = await openMailStage();
  const sent: Sent[] = [];
  await stage.startWorker([mailer(stage, sent)]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'boss' });
  await untilPhase(session, 'approval');
  await session.seal({ by: 'ada', reason: 'to be taken back' });
  const [call] = await session.approvals();
  const approve = (): Promise<unknown> => decide(session, call?.callId ?? '', { decision: 'approve' });
  const busy = { code: 'SESSION_BUSY', message: expect.stringContaining('is being rewound by ada') };
  expect(await rejection(session.send('ben'))).toMatchObject(busy);
  expect(await rejection(approve())).toMatchObject(busy);
  await session.resume({ by: 'ada' });
  await expect.poll(() => approve().then(() => 'approved', String)).toBe('approved');
  await untilPhase(session, 'idle');
  await session.send('ben');
  await untilPhase(session, 'idle');
  expect(sent.map(({ to }) => to)).toEqual(['boss', 'ben']);
  await expectFoldEqualsLive(stage.client, session);
});

test('of two who take a session back at once one is told so: no run that has done something is passed over', async () => {
  const stage = await openMailStage();
  const sent: Sent[] = [];
  await stage.startWorker([mailer(stage, sent)]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'ann' });
  await untilPhase(session, 'idle');
  const checkpointId = (await checkpoints(stage, session)).at(-1)?.id ?? '';
  const from = { sessionId: session.id, checkpointId };
  const gate = closed();
  let arrived = (): void => {};
  const arrival = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const { connection, options } = stage.client;
  const slow = new Client({
    connection,
    namespace: options.namespace,
    interceptors: {
      workflow: [
        {
          startWithDetails: async (input, next) => {
            arrived();
            await gate.passed();
            return next(input);
          },
        },
      ],
    },
  });
  const late = rejection(
    new Sessions(slow, { taskQueue: stage.taskQueue }).rewind(from, {
      agent: 'mailer',
      by: 'ada',
      reason: 'a mistake',
      message: 'ben',
    }),
  );
  await arrival;
  await stage.sessions.rewind(from, { agent: 'mailer', by: 'bob', reason: 'a mistake', message: 'carl' });
  const { runId } = await untilPhase(session, 'idle');
  gate.open();
  expect(await late).toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('rewound by somebody else'),
  });
  expect((await session.state()).runId).toBe(runId);
  expect(sent.map(({ to }) => to)).toEqual(['ann', 'carl']);
  await expectFoldEqualsLive(stage.client, session);
});

test('a rewind is refused while a mutation is open, and the session goes on', async () => {
  const stage = await openMailStage();
  let land: () => void = () => {};
  const landed = new Promise<void>((resolve) => {
    land = resolve;
  });
  const agent = defineAgent({
    name: 'mailer',
    model: stage.provider('scripted'),
    instructions: 'Send mail.',
    tools: {
      mail: defineTool({
        inputSchema: z.object({ to: z.string() }),
        execute: () => landed.then(() => 'sent'),
      }),
    },
  });
  await stage.startWorker([agent]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'ann' });
  await untilPhase(session, 'acting');
  const [first] = await checkpoints(stage, session);
  await expect(
    stage.sessions.rewind(
      { sessionId: session.id, checkpointId: first?.id ?? '' },
      { agent: 'mailer', by: 'ada', reason: 'too soon' },
    ),
  ).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  land();
  expect((await untilPhase(session, 'idle')).lastText).toBe('wrote ann');
});

test('an edit that was being checked at the checkpoint, and made since, is on record as made, not as skipped', async () => {
  const stage = await openMailStage();
  const sent: string[] = [];
  const gate = closed();
  const checked = z.string().refine(async (to) => to !== 'ada' || gate.passed().then(() => true));
  const mail = defineTool({
    inputSchema: z.object({ to: checked }),
    needsApproval: true,
    execute: ({ to }) => `sent to ${to}: ${sent.push(to)}`,
  });
  const agent = { name: 'mailer', model: stage.provider('m'), instructions: 'Send mail.', tools: { mail } };
  await stage.startWorker([defineAgent(agent)]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'bob' });
  await untilPhase(session, 'approval');
  const { runId } = await session.state();
  const edit = decide(session, 'call_1_0', { decision: 'edit', args: { to: 'ada' } }, { by: 'eve' });
  const firstCall = async (): Promise<ToolCall | undefined> => (await session.calls()).items[0];
  await expect.poll(async () => (await firstCall())?.status.kind).toBe('preparing');
  const checkpointId = (await checkpoints(stage, session)).at(-1)?.id ?? '';
  gate.open();
  expect(await edit).toMatchObject({ callId: 'call_1_0' });
  await untilPhase(session, 'idle');
  expect(sent).toEqual(['ada']);

  gate.close();
  const message = { text: 'carl', mode: 'interrupt' as const };
  const from = { sessionId: session.id, checkpointId };
  await stage.sessions.rewind(from, { agent: 'mailer', by: 'eve', reason: 'again', message });
  await expect.poll(async () => (await firstCall())?.status.kind).toBe('preparing');
  expect((await session.state()).runId).not.toBe(runId);
  gate.open();
  await untilPhase(session, 'approval');
  expect((await session.calls()).items).toMatchObject([
    {
      id: 'call_1_0',
      args: { to: 'ada' },
      status: { kind: 'completed' },
      result: { content: 'sent to ada: 1' },
    },
    { id: 'call_2_0', args: { to: 'carl' }, status: { kind: 'approval' } },
  ]);
  expect(sent).toEqual(['ada']);
  const { runId: second } = await session.state();
  // Who waits for the check of an edit while the session is taken back is told so.
  gate.close();
  const late = rejection(
    decide(session, 'call_2_0', { decision: 'edit', args: { to: 'ada' } }, { by: 'eve' }),
  );
  await expect.poll(async () => (await session.calls()).items[1]?.status.kind).toBe('preparing');
  await stage.sessions.rewind(from, { agent: 'mailer', by: 'eve', reason: 'once more' });
  expect(await late).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('rewound') });
  gate.open();
  await untilPhase(session, 'idle');
  expect((await session.state()).runId).not.toBe(second);
  expect(await firstCall()).toMatchObject({
    status: { kind: 'completed' },
    result: { content: 'sent to ada: 1' },
  });
  expect(sent).toEqual(['ada']);
  await expectSound(stage, session);
});

test('an edit changes what the model sees next, and is refused when no provider would take it', async () => {
  const stage = await openStage(({ messages }) => ({
    text: `I see ${messages.map(({ text }) => text).join('|')}`,
  }));
  await stage.startWorker([
    defineAgent({ name: 'echo', model: stage.provider('scripted'), instructions: 'Echo.' }),
  ]);
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'the sky is green' });
  await untilPhase(session, 'idle');
  const { items } = await session.transcript();
  const question = items[0];
  if (question === undefined) throw new Error('no message');
  const corrected = { ...question, blocks: [{ kind: 'text' as const, text: 'the sky is blue' }] };
  const orphan = {
    id: 'x',
    role: 'tool' as const,
    created_at: question.created_at,
    blocks: [{ kind: 'tool_result' as const, call_id: 'nobody', name: 'mail', content: '', is_error: false }],
  };
  await expect(session.edit({ transcript: { from: 1, messages: [orphan] } })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('nobody'),
  });
  await session.edit({ transcript: { from: 0, messages: [corrected] }, by: 'ada', reason: 'typo' });
  const view = await untilPhase(session, 'idle');
  expect(view.lastText).toBe('I see Echo.|the sky is blue');
  expect(view.notices).toContainEqual(
    expect.objectContaining({ kind: 'edit', message: expect.stringContaining('typo') }),
  );
  await expectFoldEqualsLive(stage.client, session);
});

test('what a rewind does not undo is told with what becomes of it: answered, doubtful, or done again', async () => {
  const names = ['note', 'pay', 'guess', 'look'];
  const stage = await openStage(({ assistantCount: n }) =>
    n === 0 ? { toolCalls: names.map((name) => ({ name, args: {} })) } : { text: 'done' },
  );
  const inputSchema = z.object({});
  await stage.startWorker([
    defineAgent({
      name: 'clerk',
      model: stage.provider('scripted'),
      instructions: 'Work.',
      tools: {
        note: defineTool({ inputSchema, effect: 'idempotent', execute: () => 'noted' }),
        pay: defineTool({ inputSchema, execute: () => 'paid' }),
        guess: defineTool({
          inputSchema,
          settle: 0,
          execute: () => {
            throw new Error('the line was cut');
          },
        }),
        look: defineTool({ inputSchema, effect: 'read', execute: () => 'seen' }),
      },
    }),
  ]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'unknown_effect');
  await resolve(session, 'call_1_2', { outcome: 'failed' });
  await untilPhase(session, 'idle');
  const saver = new TemporalSaver(stage.client);
  const [now, ...past] = await saver.list(session.id);
  const first = past.at(-1);
  const effects =
    now === undefined || first === undefined ? [] : await effectsSince(stage.client, first, now);
  expect(effects.map(({ tool, again, output }) => [tool, again, output])).toEqual([
    ['note', 'repeated', 'noted'],
    ['pay', 'answered', 'paid'],
    ['guess', 'doubtful', expect.anything()],
  ]);
  // What nobody knew at the checkpoint already is no news of the time after it.
  expect(now === undefined ? null : await effectsSince(stage.client, now, now)).toEqual([]);
});

test('of a session that was terminated, a rewind tells of the mutation that was open, and its successor knows of it', async () => {
  const stage = await openMailStage();
  let land: () => void = () => {};
  const landed = new Promise<void>((resolve) => {
    land = resolve;
  });
  const sent: string[] = [];
  const mail = defineTool({
    inputSchema: z.object({ to: z.string() }),
    settle: 0,
    execute: ({ to }) => {
      sent.push(to);
      return to === 'ann' ? 'sent' : landed.then(() => 'sent');
    },
  });
  const agent = { name: 'mailer', model: stage.provider('m'), instructions: 'Send mail.', tools: { mail } };
  await stage.startWorker([defineAgent(agent)]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'ann' });
  await untilPhase(session, 'idle');
  const afterAnn = (await checkpoints(stage, session)).at(-1)?.id ?? '';
  await session.send('ben');
  await untilPhase(session, 'acting');
  await stage.client.workflow.getHandle(session.id).terminate('a person at work');
  const saver = new TemporalSaver(stage.client);
  const [then, now] = [await saver.get(session.id, { checkpointId: afterAnn }), await saver.get(session.id)];
  if (then === null || now === null) throw new Error('no checkpoint');
  const doubtful = {
    callId: 'call_3_0',
    tool: 'mail',
    again: 'doubtful',
    args: { to: 'ben' },
    output: null,
    completedAt: null,
  };
  expect(await effectsSince(stage.client, then, now)).toEqual([doubtful]);
  expect(await effectsSince(stage.client, now, now)).toEqual([]);

  await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: afterAnn },
    { agent: 'mailer', by: 'ada', reason: 'it hung', message: 'ben' },
  );
  await untilPhase(session, 'unknown_effect');
  land();
  await resolve(session, 'call_3_0', { outcome: 'landed', output: 'sent' });
  await untilPhase(session, 'idle');
  expect(sent).toEqual(['ann', 'ben']);
  await expectFoldEqualsLive(stage.client, session);
});

test('a write that an earlier rewind has left behind is told by every later one to before it', async () => {
  const stage = await openStage(({ lastUserText, stepInTurn }) =>
    stepInTurn === 0 && lastUserText === 'note'
      ? { toolCalls: [{ name: 'note', args: {} }] }
      : { text: `heard ${lastUserText}` },
  );
  const note = defineTool({ inputSchema: z.object({}), effect: 'idempotent', execute: () => 'noted' });
  const agent = { name: 'clerk', model: stage.provider('m'), instructions: 'Work.', tools: { note } };
  const worker = await stage.startWorker([defineAgent(agent)]);
  const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'hello' });
  await untilPhase(session, 'idle');
  const saver = new TemporalSaver(stage.client);
  const latest = async (): Promise<Checkpoint> => {
    const found = await saver.get(session.id);
    if (found === null) throw new Error('no checkpoint');
    return found;
  };
  const told = async (of: Promise<EffectSince[]>): Promise<string[]> =>
    (await of).map(({ tool, again, output }) => `${tool} ${again}: ${JSON.stringify(output)}`);
  const then = await latest();
  const rewind = (): Promise<Session> =>
    stage.sessions.rewind(
      { sessionId: session.id, checkpointId: then.id },
      { agent: 'clerk', by: 'ada', reason: 'once more' },
    );
  await say(session, 'note');
  const noted = ['note repeated: "noted"'];
  expect(await told(effectsSince(stage.client, then, await latest()))).toEqual(noted);

  await rewind();
  await untilPhase(session, 'idle');
  const back = await latest();
  expect(await told(effectsSince(stage.client, then, back))).toEqual(noted);
  await say(session, 'thanks');
  expect(await told(effectsSince(stage.client, back, await latest()))).toEqual([]);

  // A run that nobody has taken yet has done nothing: what it would have gone on from is told.
  await worker.stop();
  await stage.client.workflow.getHandle(session.id).terminate('a person at work');
  for (const _ of [1, 2]) {
    await rewind();
    await stage.client.workflow.getHandle(session.id).terminate('a person at work');
    expect(await told(effectsKept(stage.client, then, []))).toEqual(noted);
  }
});

test("of a session that was reset by Temporal's own means, a rewind tells what the run that was reset has done", async () => {
  const stage = await openMailStage();
  const sent: Sent[] = [];
  await stage.startWorker([mailer(stage, sent)]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'ann' });
  await untilPhase(session, 'idle');
  const saver = new TemporalSaver(stage.client);
  const then = await saver.get(session.id);
  if (then === null) throw new Error('no checkpoint');
  await say(session, 'ben');
  const { ResetReapplyExcludeType: Exclude } = proto.temporal.api.enums.v1;
  const { runId } = await stage.client.workflowService.resetWorkflowExecution({
    namespace: stage.client.options.namespace,
    workflowExecution: { workflowId: session.id },
    reason: 'a person at work',
    requestId: session.id,
    workflowTaskFinishEventId: parseCheckpointId(then.id).eventId as never,
    resetReapplyExcludeTypes: [
      Exclude.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL,
      Exclude.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE,
    ],
  });
  await until(session, (view) => view.runId === runId && view.phase === 'idle');
  const now = await saver.get(session.id);
  const ben = { tool: 'mail', again: 'answered', args: { to: 'ben' }, output: 'sent to ben' };
  expect(now === null ? null : await effectsSince(stage.client, then, now)).toMatchObject([ben]);

  await stage.sessions.rewind(
    { sessionId: session.id, checkpointId: then.id },
    { agent: 'mailer', by: 'ada', reason: 'again', message: 'ben' },
  );
  await untilPhase(session, 'idle');
  expect(await effectsKept(stage.client, then, [])).toMatchObject([ben]);
  expect((await session.calls()).items.map(({ replayOf }) => replayOf !== null)).toEqual([false, true]);
  expect(sent.map(({ to }) => to)).toEqual(['ann', 'ben']);
});

test.each(['fork', 'rewind'] as const)(
  'nobody can tell of a write that ran at the checkpoint of a %s; it runs again',
  async (kind) => {
    const stage = await openStage(({ stepInTurn }) =>
      stepInTurn === 0 ? { toolCalls: [{ name: 'note', args: {} }] } : { text: 'noted' },
    );
    let noted = 0;
    const note = defineTool({
      inputSchema: z.object({}),
      effect: 'idempotent',
      execute: (_, { abortSignal }) =>
        ++noted > 1
          ? 'noted'
          : new Promise<string>((_resolve, reject) => {
              abortSignal.addEventListener('abort', () => reject(abortSignal.reason as Error));
            }),
    });
    await stage.startWorker(
      [defineAgent({ name: 'clerk', model: stage.provider('m'), instructions: 'Note.', tools: { note } })],
      // What a fork was taken from goes on, and hangs.
      { shutdownGraceTime: 1 },
    );
    const session = await stage.sessions.start('clerk', { id: stage.id(), message: 'go' });
    await expect.poll(() => noted, { interval: 20 }).toBe(1);
    const latest = await new TemporalSaver(stage.client).get(session.id);
    expect((await session.calls()).items).toMatchObject([
      { status: { kind: 'running' }, dispatches: [{ outcome: null }] },
    ]);
    const from = { sessionId: session.id, checkpointId: latest?.id ?? '' };
    const why = { agent: 'clerk', by: 'ada', reason: 'it hung' };
    const later =
      kind === 'fork'
        ? await stage.sessions.fork(from, { id: stage.id('fork'), ...why })
        : await stage.sessions.rewind(from, why);
    await until(later, ({ lastText }) => lastText === 'noted');
    expect((await later.calls()).items).toMatchObject([
      { status: { kind: 'completed' }, dispatches: [{ outcome: 'unknown' }, { outcome: 'returned' }] },
    ]);
    await expectFoldEqualsLive(stage.client, later);
  },
);
