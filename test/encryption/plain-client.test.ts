/** A client without the codec cannot put plain text into an encrypted session. */
import { Client } from '@temporalio/client';
import { expect, test } from 'vitest';
import { defineAgent, type Session, TemporalSaver } from '../../src/index.ts';
import { WORKFLOW } from '../../src/workflows/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { sessionsOf, withKeys } from './support.ts';

async function encrypted(): Promise<{ stage: Stage; session: Session }> {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const agent = defineAgent({ name: 'discreet', model: stage.provider('m'), instructions: 'Listen.' });
  await stage.startWorker([agent], { dataConverter: withKeys('old') });
  const sessions = sessionsOf(stage.client, stage.taskQueue, withKeys('old'));
  const session = await sessions.start('discreet', { id: stage.id(), message: 'first' });
  await untilPhase(session, 'idle');
  return { stage, session };
}

const length = async ({ client }: Stage, { id }: Session): Promise<number> =>
  (await client.workflow.getHandle(id).describe()).historyLength;

test('writes of a client without the codec are refused before they are sent, and reads name the next step', async () => {
  const { stage, session } = await encrypted();
  const before = await length(stage, session);
  const plain = stage.sessions.get(session.id);
  const refused = {
    code: 'ENCRYPTED',
    message: `${session.id} is encrypted, and this client has no codec for it. Create the client with the dataConverter of the workers; for commands: --data-converter <module>`,
  };
  const start = { id: session.id, onExisting: 'use', message: 'plain text' } as const;
  for (const write of [
    () => plain.send('plain text'),
    () => plain.pause({ reason: 'plain text' }),
    () => plain.cancel({ reason: 'plain text' }),
    () => plain.setBudget({ limits: { turns: 1 } }),
    () => plain.seal({ reason: 'plain text' }),
    () => stage.sessions.start('discreet', start),
    () => plain.state(),
    () => plain.snapshot(),
    () => new TemporalSaver(stage.client).get(session.id),
  ]) {
    expect(await rejection(write())).toMatchObject(refused);
  }
  expect(await length(stage, session)).toBe(before);
  await session.send('second');
  await until(session, ({ lastText }) => lastText === 'heard second');
});

test('a session without a summary, which another program has started, is recognised by its input', async () => {
  const { stage } = await encrypted();
  const id = stage.id('other');
  const sessions = sessionsOf(stage.client, stage.taskQueue, withKeys('old'));
  const { connection, options } = stage.client;
  const client = new Client({ connection, namespace: options.namespace, dataConverter: withKeys('old') });
  await client.workflow.start(WORKFLOW.session, {
    workflowId: id,
    taskQueue: stage.taskQueue,
    args: [{ agent: 'discreet', message: { text: 'first' } }],
  });
  await untilPhase(sessions.get(id), 'idle');
  expect(await rejection(stage.sessions.get(id).send('plain text'))).toMatchObject({ code: 'ENCRYPTED' });
});

test('a client without a codec writes to a session that is not encrypted, and one with a codec to both', async () => {
  const stage = await openStage(({ lastUserText }) => ({ text: `heard ${lastUserText}` }));
  const agent = defineAgent({ name: 'open', model: stage.provider('m'), instructions: 'Listen.' });
  await stage.startWorker([agent], { dataConverter: withKeys('old') });
  const session = await stage.sessions.start('open', { id: stage.id(), message: 'first' });
  const sessions = sessionsOf(stage.client, stage.taskQueue, withKeys('old'));
  await untilPhase(sessions.get(session.id), 'idle');
  await sessions.get(session.id).send('second');
  const { messages } = await until(sessions.get(session.id), ({ lastText }) => lastText === 'heard second');
  expect(messages).toBe(4);
});
