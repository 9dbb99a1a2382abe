/** Codecs get the serialization contexts of the SDK, also where Perdure itself decodes. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { Client } from '@temporalio/client';
import type { Payload, PayloadCodec, SerializationContext } from '@temporalio/common';
import proto from '@temporalio/proto';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineAgent, defineTool, Sessions, TemporalSaver } from '../../src/index.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';

const { Payload: PayloadMessage } = proto.temporal.api.common.v1;
const ENCODING = Buffer.from('binary/by-workflow');

/** A key for each workflow, and for each of its activities. Without its context, a payload cannot be read. */
function keyOf(context: SerializationContext | undefined): Buffer {
  if (context?.workflowId === undefined)
    throw new Error(`no workflow in the context ${JSON.stringify(context)}`);
  const activity = context.type === 'activity' ? context.activityId : '';
  return createHash('sha256')
    .update(JSON.stringify([context.namespace, context.workflowId, activity]))
    .digest();
}

const codec: PayloadCodec = {
  encode: async (payloads, context) =>
    payloads.map((payload): Payload => {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', keyOf(context), nonce);
      const text = [nonce, cipher.update(PayloadMessage.encode(payload).finish()), cipher.final()];
      return { metadata: { encoding: ENCODING }, data: Buffer.concat([...text, cipher.getAuthTag()]) };
    }),
  decode: async (payloads, context) =>
    payloads.map((payload): Payload => {
      const { metadata, data = new Uint8Array() } = payload;
      if (!ENCODING.equals(metadata?.['encoding'] ?? Buffer.alloc(0))) return payload;
      const bytes = Buffer.from(data ?? []);
      const cipher = createDecipheriv('aes-256-gcm', keyOf(context), bytes.subarray(0, 12));
      cipher.setAuthTag(bytes.subarray(-16));
      return PayloadMessage.decode(Buffer.concat([cipher.update(bytes.subarray(12, -16)), cipher.final()]));
    }),
};
const dataConverter = { payloadCodecs: [codec] };

test('a key for each workflow and activity works for workers, clients, streams, histories, forks and rewinds', async () => {
  const stage = await openStage(({ lastUserText, stepInTurn }) =>
    lastUserText.startsWith('look') && stepInTurn === 0
      ? { toolCalls: [{ name: 'look', args: { at: lastUserText } }] }
      : { text: `done: ${lastUserText}`, chunkDelayMs: 20 },
  );
  const { connection, options } = stage.client;
  const client = new Client({ connection, namespace: options.namespace, dataConverter });
  const sessions = new Sessions(client, { taskQueue: stage.taskQueue });
  const look = defineTool({
    inputSchema: z.object({ at: z.string() }),
    effect: 'read',
    execute: async ({ at }) => at,
  });
  const send = defineTool({
    inputSchema: z.object({ to: z.string() }),
    idempotency: { scope: 'global' },
    execute: ({ to }) => `sent to ${to}`,
  });
  const agent = defineAgent({
    name: 'keyed',
    model: stage.provider('m'),
    instructions: 'Look.',
    tools: { look, send },
  });
  // Without memory for transcripts, each model call reads the history.
  const { stop } = await stage.startWorker([agent], { dataConverter, memoryBytes: 1 });

  const session = await sessions.start('keyed', { id: stage.id(), message: 'look here' });
  for await (const part of session.stream()) if (part.type === 'phase' && part.phase === 'idle') break;
  expect((await untilPhase(session, 'idle')).lastText).toBe('done: look here');
  await session.send('more');
  await until(session, ({ lastText }) => lastText === 'done: more');

  const saver = new TemporalSaver(client, { taskQueue: stage.taskQueue });
  const checkpoints = await saver.list(session.id);
  const first = checkpoints.filter(({ metadata }) => metadata['phase'] === 'idle').at(-1);
  const from = { sessionId: session.id, checkpointId: first?.id ?? '' };
  const why = { by: 'ada', reason: 'to see' };
  const fork = await sessions.fork(from, { id: stage.id('fork'), message: 'forked', ...why });
  await until(fork, ({ lastText }) => lastText === 'done: forked');
  await sessions.rewind(from, { message: 'again', ...why });
  await until(session, ({ lastText }) => lastText === 'done: again');

  // Without a worker, the client reads the history.
  const live = await session.snapshot();
  await stop();
  expect(await session.snapshot()).toEqual(live);
});
