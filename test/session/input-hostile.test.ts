import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type Session } from '../../src/index.ts';
import { UPDATE } from '../../src/workflows/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

async function rested(): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText.slice(0, 20)}` }));
  await stage.startWorker([defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Echo.' })]);
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'first' });
  await untilPhase(session, 'idle');
  return { stage, session };
}

/** Sends a signal with exactly these bytes, as a client in any language may. */
async function signalBytes(
  stage: Stage,
  session: Session,
  encoding: string,
  data: string | Uint8Array,
): Promise<void> {
  await stage.client.workflowService.signalWorkflowExecution({
    namespace: stage.client.options.namespace,
    workflowExecution: { workflowId: session.id },
    signalName: 'send',
    input: { payloads: [{ metadata: { encoding: Buffer.from(encoding) }, data: Buffer.from(data) }] },
  });
}

/** Still answers, is what its history says, and has noted so many malformed signals. */
async function expectUnharmed(stage: Stage, session: Session, noted: number): Promise<void> {
  await session.send('small');
  const { notices } = await until(
    session,
    ({ lastText, phase }) => lastText === 'heard small' && phase === 'idle',
  );
  expect(notices.filter(({ kind }) => kind === 'malformed_signal')).toHaveLength(noted);
  expect((await expectSound(stage, session)).end).toBeNull();
}

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

test.each<[string, string, string | Uint8Array]>([
  ['JSON that breaks off', 'json/plain', '{"text": "hi'],
  ['nothing', 'json/plain', ''],
  ['bytes that are no text', 'json/plain', new Uint8Array([0xff, 0xfe, 0x00])],
  ['an encoding that nobody knows', 'application/x-pickle', 'cos\nsystem'],
  ['bytes', 'binary/plain', new Uint8Array([1, 2, 3])],
  ['an encrypted payload without its codec', 'binary/encrypted', new Uint8Array([9, 9, 9])],
  ['lists in lists in lists', 'json/plain', nested(100_000)],
  ['objects in objects', 'json/plain', `${'{"text":'.repeat(20_000)}1${'}'.repeat(20_000)}`],
])('a signal of %s is noted, and changes nothing else', async (_, encoding, data) => {
  const { stage, session } = await rested();
  const before = await session.snapshot();
  await signalBytes(stage, session, encoding, data);
  const { notices } = await until(session, (view) => view.notices.length === 1);
  expect({ ...(await session.snapshot()), notices: [] }).toEqual(before);
  expect(notices[0]?.message).toMatch(/^signal send was ignored: /);
  await expectUnharmed(stage, session, 1);
});

test('a second argument that cannot be decoded is nobody’s concern, also before the first task', async () => {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'first' });
  const good = { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from('"hi"') };
  const bad = { ...good, data: Buffer.from('{') };
  for (const payloads of [
    [good, bad],
    [bad, good],
  ]) {
    await stage.client.workflowService.signalWorkflowExecution({
      namespace: stage.client.options.namespace,
      workflowExecution: { workflowId: session.id },
      signalName: 'send',
      input: { payloads },
    });
  }
  await stage.startWorker([defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Echo.' })]);
  const { messages } = await untilPhase(session, 'idle');
  expect(messages).toBe(3);
  await expectUnharmed(stage, session, 1);
});

test('a signal by the name of an update is a signal that nobody takes', async () => {
  const { stage, session } = await rested();
  const handle = stage.client.workflow.getHandle(session.id);
  await handle.signal('budget', { limits: { turns: 0 } });
  await handle.signal('sendMessage', { text: 'by the back door' });
  await handle.signal('decide', { callId: 'call_1_0', decision: { decision: 'approve' } });
  await expectUnharmed(stage, session, 0);
  expect((await session.state()).messages).toBe(4);
});

test.each<[string, string]>([
  ['JSON that breaks off', '{"text": "hi'],
  ['lists in lists in lists', nested(100_000)],
  ['a number beyond all numbers', '{"callId":"call_1_0","decision":{"decision":"respond","output":1e999}}'],
])('an update of %s is refused, and leaves no trace', async (_, data) => {
  const { stage, session } = await rested();
  const { historyLength } = await stage.client.workflow.getHandle(session.id).describe();
  for (const name of ['sendMessage', 'decide']) {
    const { outcome } = await stage.client.workflowService.updateWorkflowExecution({
      namespace: stage.client.options.namespace,
      workflowExecution: { workflowId: session.id },
      request: {
        meta: { updateId: randomUUID() },
        input: {
          name,
          args: {
            payloads: [{ metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from(data) }],
          },
        },
      },
      waitPolicy: { lifecycleStage: 'UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED' as never },
    });
    expect(outcome?.failure?.message).toBeTruthy();
  }
  expect((await stage.client.workflow.getHandle(session.id).describe()).historyLength).toBe(historyLength);
  await expectUnharmed(stage, session, 0);
});

test('a signal with properties of every object is only a signal', async () => {
  const { stage, session } = await rested();
  await signalBytes(
    stage,
    session,
    'json/plain',
    '{"text":"hi","__proto__":{"mode":"interrupt"},"constructor":1}',
  );
  const { turn } = await until(session, ({ lastText }) => lastText === 'heard hi');
  expect(turn).toBe(2);
  await expectUnharmed(stage, session, 0);
});

const ODD: [string, string][] = [
  ['half a surrogate pair', 'a\ud800b'],
  ['the other half', '\udc00'],
  ['a zero byte', 'a\u0000b'],
  ['line separators', 'a\u2028b\u2029c'],
  ['what JSON escapes', '"\\\b\f\n\r\t/'],
];

test.each(ODD)('a message with %s is taken as it is', async (_, text) => {
  const { stage, session } = await rested();
  await session.send({ text, id: 'odd' });
  await until(session, ({ turn, phase }) => turn === 2 && phase === 'idle');
  const { transcript } = await session.snapshot();
  expect(transcript.find(({ id }) => id === 'odd')?.blocks).toEqual([{ kind: 'text', text }]);
  await expectUnharmed(stage, session, 0);
});

/** A session whose model calls a tool with these arguments, and whose tool gives this. */
async function called(args: unknown, result: unknown): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0 ? { toolCalls: [{ name: 'take', args }] } : { text: 'done' },
  );
  const take = defineTool({ inputSchema: z.looseObject({}), effect: 'read', execute: () => result });
  await stage.startWorker([
    defineAgent({ name: 'taker', model: stage.provider('m'), instructions: 'Take.', tools: { take } }),
  ]);
  const session = await stage.sessions.start('taker', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'idle', 'waiting');
  return { stage, session };
}

test.each(ODD)('arguments and results with %s are taken as they are', async (_, text) => {
  const { stage, session } = await called({ text, [text]: [text] }, { text, [text]: [text] });
  expect((await session.state()).lastText).toBe('done');
  const [call] = (await session.calls()).items;
  expect(call).toMatchObject({ status: { kind: 'completed' }, args: { text, [text]: [text] } });
  expect(call?.result).toEqual({ content: { text, [text]: [text] }, isError: false });
  await expectSound(stage, session);
});

const deep = (depth: number): unknown => JSON.parse(`{"a":${nested(depth)}}`);

test.each([500, 3_000, 20_000])(
  'arguments and results that are %i levels deep do not stop the session',
  async (depth) => {
    for (const [args, result] of [
      [deep(depth), 'flat'],
      [{}, deep(depth)],
    ] as const) {
      const { stage, session } = await called(args, result);
      const view = await session.state();
      expect(['idle', 'waiting']).toContain(view.phase);
      await session.cancel();
      await session.result();
      await expectSound(stage, session);
    }
  },
);

test('arguments with properties of every object are only arguments', async () => {
  const args = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1},"a":1}') as unknown;
  const { stage, session } = await called(args, args);
  expect((await session.state()).lastText).toBe('done');
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  await expectSound(stage, session);
});

test('an update of any client with a key that would be lost is refused before it is recorded', async () => {
  const { stage, session } = await rested();
  const handle = stage.client.workflow.getHandle(session.id);
  const { historyLength } = await handle.describe();
  const update = JSON.parse(
    '{"transcript":{"from":0,"messages":[{"id":"m","role":"user","created_at":"2026-01-01T00:00:00.000Z",' +
      '"blocks":[{"kind":"text","text":"x","metadata":{"__proto__":{"a":1}}}]}]}}',
  ) as unknown;
  expect(await rejection(handle.executeUpdate(UPDATE.edit, { args: [update] }))).toMatchObject({
    cause: {
      type: 'INVALID_ARGUMENT',
      message: expect.stringContaining('blocks.0.metadata.__proto__: is a reserved name'),
    },
  });
  expect((await handle.describe()).historyLength).toBe(historyLength);
  await expectUnharmed(stage, session, 0);
});

test('arguments of a global effect reach it whole, a key that copies lose included', async () => {
  const args = JSON.parse('{"__proto__":{"a":1},"to":"ada"}') as unknown;
  const stage = await openStage(({ assistantCount }) =>
    assistantCount === 0 ? { toolCalls: [{ name: 'mail', args }] } : { text: 'done' },
  );
  const mail = defineTool({
    inputSchema: z.looseObject({ to: z.string() }),
    idempotency: { scope: 'global' },
    execute: ({ to }) => `sent to ${to}`,
  });
  await stage.startWorker([
    defineAgent({ name: 'mailer', model: stage.provider('m'), instructions: 'Mail.', tools: { mail } }),
  ]);
  const session = await stage.sessions.start('mailer', { id: stage.id(), message: 'go' });
  await untilPhase(session, 'idle', 'waiting', 'unknown_effect');
  const [call] = (await session.calls()).items;
  expect(JSON.stringify(call?.args)).toBe(JSON.stringify(args));
  expect(call).toMatchObject({ status: { kind: 'completed' }, result: { content: 'sent to ada' } });
  await expectSound(stage, session);
});
