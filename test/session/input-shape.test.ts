import { expect, test } from 'vitest';
import { defineAgent, type Session, type SessionState } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

async function rested(): Promise<{ stage: Stage; session: Session; before: SessionState }> {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  await stage.startWorker([
    defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Say what you heard.' }),
  ]);
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'first' });
  await untilPhase(session, 'idle');
  return { stage, session, before: await session.snapshot() };
}

const MALFORMED: [name: string, payload: unknown, message: string][] = [
  ['send', undefined, 'text: is missing: expected string'],
  ['send', null, 'text: is missing: expected string'],
  ['send', '', 'text: text is empty'],
  ['send', 42, 'input: expected object'],
  ['send', { text: '' }, 'text: text is empty'],
  ['send', { text: ['a'] }, 'text: expected string'],
  ['send', { text: 'x', mode: 'now' }, 'mode: expected one of "queue", "interrupt", "aside"'],
  ['send', { text: 'x', id: '' }, 'id: the minimum is 1'],
  ['send', { text: 'x', id: 'i'.repeat(201) }, 'id: the maximum is 200'],
  ['send', { text: 'x', by: { name: 'ada' } }, 'by: expected string'],
  ['send', ['x'], 'input: expected object'],
  ['pause', { now: 'yes' }, 'now: expected boolean'],
  ['pause', 'please', 'input: expected object'],
  ['pause', { reason: 'r'.repeat(10_001) }, 'reason: the maximum is 10000'],
  ['resume', 7, 'input: expected object'],
  ['resume', { by: 7 }, 'by: expected string'],
  ['cancel', [], 'input: expected object'],
  ['cancel', { reason: 1 }, 'reason: expected string'],
];

test('malformed signals are noted with the field, and change nothing else', async () => {
  const { stage, session, before } = await rested();
  const handle = stage.client.workflow.getHandle(session.id);
  for (const [name, payload] of MALFORMED) await handle.signal(name, payload);
  await until(session, ({ notices }) => notices.length === MALFORMED.length);

  const { notices, ...after } = await session.snapshot();
  expect({ ...after, notices: [] }).toEqual(before);
  for (const [i, [name, , message]] of MALFORMED.entries()) {
    expect(notices[i]?.kind).toBe('malformed_signal');
    expect(notices[i]?.message).toContain(`signal ${name} was ignored: ${message}`);
  }
  await expectSound(stage, session);
});

test('a signal without any argument means the plain thing', async () => {
  const { stage, session } = await rested();
  const handle = stage.client.workflow.getHandle(session.id);
  await handle.signal('pause');
  await untilPhase(session, 'paused');
  await handle.signal('resume');
  await untilPhase(session, 'idle');
  await handle.signal('send', 'a bare string');
  const { paused } = await until(session, ({ lastText }) => lastText === 'heard a bare string');
  expect(paused).toBeNull();
  await expectSound(stage, session);
});

test('more notices than are kept: the last hundred stay', async () => {
  const { stage, session } = await rested();
  const handle = stage.client.workflow.getHandle(session.id);
  for (let i = 0; i < 105; i++) await handle.signal('send', { text: '', n: i });
  await handle.signal('resume', { by: 1 });
  await until(session, ({ notices }) => notices.at(-1)?.message.startsWith('signal resume') === true);
  expect((await session.snapshot()).notices).toHaveLength(100);
  await expectSound(stage, session);
});

test('an unknown signal, update or query changes nothing', async () => {
  const { stage, session, before } = await rested();
  const handle = stage.client.workflow.getHandle(session.id);
  await handle.signal('approve', { everything: true });
  await handle.signal('__proto__', { polluted: true });
  expect(await rejection(handle.executeUpdate('approveAll', { args: [{}] }))).toMatchObject({
    name: 'WorkflowUpdateFailedError',
  });
  expect(await rejection(handle.query('secrets'))).toMatchObject({ name: 'QueryNotRegisteredError' });
  expect(await session.snapshot()).toEqual(before);

  await session.send('small');
  await until(session, ({ lastText }) => lastText === 'heard small');
  await expectSound(stage, session);
});

test('malformed updates are refused with the field, and leave no trace', async () => {
  const { stage, session, before } = await rested();
  const handle = stage.client.workflow.getHandle(session.id);
  const { historyLength } = await handle.describe();
  const seen = { callId: 'call_1_0', argsDigest: 'd', dispatchNo: 1 };
  const cases: [name: string, payload: unknown, message: string][] = [
    ['sendMessage', { text: '' }, 'text: text is empty'],
    ['sendMessage', { message: 'x' }, 'text: '],
    ['decide', {}, 'callId: '],
    ['decide', { callId: 'call_1_0', argsDigest: 'd', decision: 'approve' }, 'decision: '],
    [
      'decide',
      { callId: 'call_1_0', argsDigest: 'd', decision: { decision: 'maybe' } },
      'decision.decision: ',
    ],
    ['decide', { callId: 'call_1_0', argsDigest: 'd', decision: { decision: 'edit' } }, 'decision.args: '],
    ['decide', { callId: 'call_1_0', decision: { decision: 'approve' } }, 'argsDigest: '],
    ['resolve', { ...seen, resolution: { outcome: 'landed' } }, 'resolution.output: '],
    ['resolve', { ...seen, dispatchNo: undefined, resolution: { outcome: 'absent' } }, 'dispatchNo: '],
    ['resolve', { ...seen, argsDigest: undefined, resolution: { outcome: 'absent' } }, 'argsDigest: '],
    ['budget', { limits: { usd: -1 } }, 'limits.usd: '],
    ['budget', { limits: { turns: 1.5 } }, 'limits.turns: '],
    ['budget', { limits: { usd: 'ten' } }, 'limits.usd: '],
    ['budget', {}, 'limits: pass new caps'],
    [
      'sendMessage',
      { text: 'x', modus: 'interrupt' },
      'modus: is unknown. Known names: text, blocks, id, mode, pin, by',
    ],
    [
      'budget',
      { limits: { USD: 2 } },
      'limits.USD: is unknown. Known names: turns, toolCalls, tokens, usd, activeMs',
    ],
    [
      'edit',
      { transcirpt: { from: 0, messages: [] } },
      'transcirpt: is unknown. Known names: transcript, plan,',
    ],
    [
      'edit',
      { plan: [{ id: 'a', title: 'A', state: 'done' }] },
      'plan.0.state: is unknown. Known names: id,',
    ],
    [
      'decide',
      { callId: 'call_1_0', argsDigest: 'd', argsDiggest: 'd', decision: { decision: 'approve' } },
      'argsDiggest: is unknown. Known names: callId, argsDigest, by',
    ],
    [
      'decide',
      { callId: 'call_1_0', argsDigest: 'd', decision: { decision: 'approve', args: {} } },
      'decision.args: is unknown. Known names: decision',
    ],
    [
      'resolve',
      { ...seen, resolution: { outcome: 'failed', why: 'x' } },
      'resolution.why: is unknown. Known names: outcome, reason',
    ],
    ['seal', { now: true }, 'now: is unknown. Known names: by, reason'],
  ];
  for (const [name, payload, message] of cases) {
    const error = await rejection(handle.executeUpdate(name, { args: [payload] }));
    expect(error, name).toMatchObject({ cause: { type: 'INVALID_ARGUMENT' } });
    expect((error as Error & { cause: Error }).cause.message).toContain(message);
  }
  expect((await handle.describe()).historyLength).toBe(historyLength);
  expect(await session.snapshot()).toEqual(before);
  await expectSound(stage, session);
});

test('names in free JSON are nobody’s concern, and a plan may come back as it was read', async () => {
  const { stage, session } = await rested();
  const handle = stage.client.workflow.getHandle(session.id);
  const any = { limits: { USD: 2 }, callId: null };
  const evidence = [{ postcondition: 0, tool: 'look', call_id: 'call_1_0' }];
  const plan = [{ id: 'a', title: 'A', postconditions: ['seen'], evidence, status: 'pending' }];
  const created_at = new Date(0).toISOString();
  const messages = [
    { id: 'a', role: 'user', created_at, blocks: [{ kind: 'text', text: 'x', metadata: { any } }] },
    {
      id: 'b',
      role: 'assistant',
      created_at,
      blocks: [{ kind: 'tool_call', id: 'c', name: 'look', args: any }],
    },
    {
      id: 'c',
      role: 'tool',
      created_at,
      blocks: [{ kind: 'tool_result', call_id: 'c', name: 'look', content: any, is_error: false }],
    },
    // The model is asked of no transcript that ends with its own words.
    { id: 'd', role: 'assistant', created_at, blocks: [{ kind: 'text', text: 'seen' }] },
  ];
  await handle.executeUpdate('edit', { args: [{ transcript: { from: 0, messages }, plan }] });
  const { transcript, plan: taken } = await session.snapshot();
  expect(transcript).toEqual(messages);
  // What was read is taken back once more.
  await handle.executeUpdate('edit', {
    args: [{ transcript: { from: 0, messages: transcript }, plan: taken }],
  });
  expect(await session.snapshot()).toMatchObject({ transcript, plan: taken });
  await expectSound(stage, session);
});

test('signals and updates that come before any worker are taken in the order in which they are folded', async () => {
  const stage = await openStage(({ messages }) => ({ text: messages.map(({ text }) => text).join('|') }));
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'one' });
  const handle = stage.client.workflow.getHandle(session.id);
  await handle.signal('send', { text: '' });
  await handle.signal('pause', { by: 'ada' });
  await handle.signal('send', { text: 'two', id: 'm2' });
  await handle.signal('resume', { by: 'ada' });
  await handle.signal('send', { text: 'two again', id: 'm2' });
  await handle.signal('send', 'three');
  const update = handle.executeUpdate('sendMessage', { args: [{ text: 'four' }] });

  await stage.startWorker([
    defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Say it all.' }),
  ]);
  await update;
  await until(session, ({ phase, messages }) => phase === 'idle' && messages >= 5);
  const { transcript } = await session.snapshot();
  const heard = transcript.filter(({ role }) => role === 'user').flatMap(({ blocks }) => blocks);
  expect(heard).toMatchObject([{ text: 'one' }, { text: 'two' }, { text: 'three' }, { text: 'four' }]);
  await expectSound(stage, session);
});
