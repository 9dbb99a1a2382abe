/** A worker without a key: the session waits, says so, and goes on when the key is there. */
import { Client } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, type PendingCall, TemporalSaver } from '../../src/index.ts';
import { scriptedTurns } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';
import { codecWithKeys, sessionsOf, withKeys } from './support.ts';

test('without the key workflow tasks fail with its id; a worker with the key goes on, and nothing is lost', async () => {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const agent = defineAgent({ name: 'waiting', model: stage.provider('m'), instructions: 'Listen.' });
  const sessions = sessionsOf(stage.client, stage.taskQueue, withKeys('old', 'new'));
  const old = await stage.startWorker([agent], { dataConverter: withKeys('old') });
  const session = await sessions.start('waiting', { id: stage.id(), message: 'first' });
  const { workflow } = stage.client;
  await expect
    .poll(async () => (await workflow.getHandle(session.id).describe()).raw.pendingWorkflowTask?.attempt ?? 0)
    .toBeGreaterThan(1);
  const error = await session.ping().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    code: 'TASK_FAILING',
    message: expect.stringContaining('This process does not have the encryption key new'),
  });
  await old.stop();
  await stage.startWorker([agent], { dataConverter: withKeys('old', 'new') });
  expect((await untilPhase(session, 'idle')).lastText).toBe('heard first');
});

test('a session at rest whose worker lacks its key says that to whoever asks', async () => {
  const stage = await openStage(() => ({ text: 'heard' }));
  const agent = defineAgent({ name: 'resting', model: stage.provider('m'), instructions: 'Listen.' });
  const sessions = sessionsOf(stage.client, stage.taskQueue, withKeys('new', 'old'));
  const first = await stage.startWorker([agent], { dataConverter: withKeys('old') });
  const session = await sessions.start('resting', { id: stage.id(), message: 'first' });
  await untilPhase(session, 'idle');
  await first.stop();
  await stage.startWorker([agent], { dataConverter: withKeys('new') });
  await expect(session.ping()).rejects.toMatchObject({
    code: 'TASK_FAILING',
    message: expect.stringContaining('It may lack an encryption key'),
  });
});

test('a mutation that reaches a worker without the key has not run, and runs once on a worker with the key', async () => {
  const stage = await openStage(({ stepInTurn }) =>
    stepInTurn === 0 ? { toolCalls: [{ name: 'pay', args: { cents: 1 } }] } : { text: 'paid' },
  );
  let paid = 0;
  const pay = defineTool({
    inputSchema: z.object({ cents: z.number() }),
    needsApproval: true,
    execute: () => {
      paid += 1;
      return { paid };
    },
  });
  const agent = defineAgent({
    name: 'payer',
    model: stage.provider('m'),
    instructions: 'Pay.',
    tools: { pay },
  });
  const both = codecWithKeys('old', 'new');
  const lacking = codecWithKeys('old');
  let hasKey = true;
  const codec: PayloadCodec = {
    encode: both.encode,
    // As on a second worker, which gets the calls and lacks the key of the first.
    decode: (payloads, context) =>
      (context?.type === 'activity' && !hasKey ? lacking : both).decode(payloads, context),
  };
  await stage.startWorker([agent], { dataConverter: { payloadCodecs: [codec] } });
  const sessions = sessionsOf(stage.client, stage.taskQueue, { payloadCodecs: [both] });
  const session = await sessions.start('payer', { id: stage.id(), message: 'pay' });
  const { pending } = await untilPhase(session, 'approval');

  hasKey = false;
  await session.decide(pending[0] as PendingCall, { decision: 'approve' }, { by: 'ada' });
  await expect
    .poll(async () => (await session.calls()).items[0]?.status)
    .toMatchObject({
      kind: 'stuck',
      reason: expect.stringContaining('does not have the encryption key new'),
    });
  expect((await session.calls()).items[0]?.dispatches).toMatchObject([{ outcome: 'absent', unbegun: true }]);
  expect(paid).toBe(0);

  hasKey = true;
  await untilPhase(session, 'idle');
  expect((await session.calls()).items[0]?.status).toEqual({ kind: 'completed' });
  expect(paid).toBe(1);
});

test('a reader without the key of a signal gets no state that lacks the signal', async () => {
  const stage = await openStage(scriptedTurns([{ toolCalls: [{ name: 'pay', args: {} }] }]));
  const pay = defineTool({ inputSchema: z.object({}), needsApproval: true, execute: () => null });
  const tools = { pay };
  const agent = defineAgent({ name: 'payer', model: stage.provider('m'), instructions: 'Pay.', tools });
  await stage.startWorker([agent], { dataConverter: withKeys('new', 'old') });
  const older = sessionsOf(stage.client, stage.taskQueue, withKeys('new', 'old'));
  const session = await older.start('payer', { id: stage.id(), message: 'pay' });
  await untilPhase(session, 'approval');
  const newer = sessionsOf(stage.client, stage.taskQueue, withKeys('old', 'new'));
  await newer.get(session.id).pause({ by: 'ada', reason: 'lunch' });
  await until(session, ({ paused }) => paused !== null);

  const { connection, options } = stage.client;
  const saverWith = (codec: PayloadCodec): TemporalSaver => {
    const dataConverter = { payloadCodecs: [codec] };
    return new TemporalSaver(new Client({ connection, namespace: options.namespace, dataConverter }));
  };
  expect(await rejection(saverWith(codecWithKeys('old')).get(session.id))).toMatchObject({
    code: 'UNKNOWN_KEY',
  });

  const both = codecWithKeys('old', 'new');
  let isDown = true;
  const saver = saverWith({
    encode: both.encode,
    decode: async (payloads, context) => {
      const plain = await both.decode(payloads, context);
      const isPause = plain.some(({ data }) => Buffer.from(data ?? []).includes('lunch'));
      if (isPause && isDown) throw new Error('the key service is down');
      return plain;
    },
  });
  expect(await rejection(saver.get(session.id))).toMatchObject({
    message: expect.stringContaining('the key service is down'),
  });
  isDown = false;
  expect((await saver.get(session.id))?.state['paused']).toMatchObject({ by: 'ada', reason: 'lunch' });
});
