/** Activities that meet a missing key wait for it, however long it takes. */
import { Client } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  defineAgent,
  defineTool,
  type PendingCall,
  type Session,
  Sessions,
  TemporalSaver,
} from '../../src/index.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { codecWithKeys, sessionsOf, withKeys } from './support.ts';

/** The activities that wait, each with its attempt and the failure of the one before. */
async function waiting({ client }: Stage, { id }: Session): Promise<string> {
  const { raw } = await client.workflow.getHandle(id).describe();
  return (raw.pendingActivities ?? [])
    .map(({ activityType, attempt, maximumAttempts, lastFailure }) =>
      [activityType?.name, attempt, maximumAttempts, lastFailure?.applicationFailureInfo?.type].join(' '),
    )
    .join();
}

test('a fork, an edited call and a verification wait for a key beyond five attempts, and go on when it is there', async () => {
  const stage = await openStage(({ stepInTurn, lastUserText }) =>
    stepInTurn === 0 && lastUserText.startsWith('pay')
      ? { toolCalls: [{ name: lastUserText, args: { cents: 1 } }] }
      : { text: `heard ${lastUserText}` },
  );
  const paid: number[] = [];
  let began = (): void => {};
  const hasBegun = new Promise<void>((resolve) => {
    began = resolve;
  });
  const inputSchema = z.object({ cents: z.number() });
  const tools = {
    payAsked: defineTool({
      inputSchema,
      needsApproval: true,
      execute: ({ cents }) => void paid.push(cents),
    }),
    payLost: defineTool({
      inputSchema,
      timeout: '1s',
      settle: 0,
      execute: () => {
        began();
        return new Promise(() => {});
      },
      verify: () => ({ outcome: 'landed', output: 'paid after all' }),
    }),
  };
  const agent = defineAgent({ name: 'payer', model: stage.provider('m'), instructions: 'Pay.', tools });
  const both = codecWithKeys('old', 'new');
  let writes = codecWithKeys('old');
  let isMissing = false;
  const codec: PayloadCodec = {
    encode: (payloads, context) => writes.encode(payloads, context),
    decode: async (payloads, context) => {
      const plain = await both.decode(payloads, context);
      // Inputs of calls cannot be read, nor the past of the fork, whose own payloads have the new key.
      const isCall = plain.some(({ data }) => Buffer.from(data ?? []).includes('"tool":'));
      return isMissing ? codecWithKeys(isCall ? 'old' : 'new').decode(payloads, context) : plain;
    },
  };
  await stage.startWorker([agent], { dataConverter: { payloadCodecs: [codec] } });
  const { connection, options } = stage.client;
  const dataConverter = withKeys('old', 'new');
  const client = new Client({ connection, namespace: options.namespace, dataConverter });
  const sessions = new Sessions(client, { taskQueue: stage.taskQueue });
  const older = sessionsOf(stage.client, stage.taskQueue, withKeys('old'));
  const past = await older.start('payer', { id: stage.id('past'), message: 'first' });
  await untilPhase(past, 'idle');
  const [latest] = await new TemporalSaver(client, { taskQueue: stage.taskQueue }).list(past.id, {
    limit: 1,
  });
  const from = { sessionId: past.id, checkpointId: latest?.id ?? '' };

  writes = both;
  const asked = await sessions.start('payer', { id: stage.id('asked'), message: 'payAsked' });
  const { pending } = await untilPhase(asked, 'approval');
  const lost = await sessions.start('payer', { id: stage.id('lost'), message: 'payLost' });
  await hasBegun;
  isMissing = true;
  const why = { by: 'ada', reason: 'to see' };
  const fork = await sessions.fork(from, { id: stage.id('fork'), message: 'and?', ...why });
  const edit = asked
    .decide(pending[0] as PendingCall, { decision: 'edit', args: { cents: 2 } }, { by: 'ada' })
    .catch((error: unknown) => error);
  const missing = '0 UnknownEncryptionKey';
  await expect
    .poll(() => Promise.all([fork, asked, lost].map((session) => waiting(stage, session))), {
      timeout: 90_000,
      interval: 500,
    })
    .toEqual([
      expect.stringMatching(new RegExp(`oad ([6-9]|\\d\\d) ${missing}$`)),
      expect.stringMatching(new RegExp(`repare ([6-9]|\\d\\d) ${missing}$`)),
      expect.stringMatching(new RegExp(`erify ([6-9]|\\d\\d) ${missing}$`)),
    ]);
  expect(paid).toEqual([]);

  isMissing = false;
  await edit;
  expect((await untilPhase(fork, 'idle')).lastText).toBe('heard and?');
  await untilPhase(asked, 'idle');
  expect(paid).toEqual([2]);
  await untilPhase(lost, 'idle');
  expect((await lost.calls()).items[0]).toMatchObject({
    status: { kind: 'completed' },
    result: { content: 'paid after all' },
  });
});
