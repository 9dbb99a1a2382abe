/** A history that a worker cannot read: the session waits and says so, and nothing is made up. */
import { Client } from '@temporalio/client';
import { expect, test } from 'vitest';
import { type DefinedAgent, defineAgent, Sessions } from '../../src/index.ts';
import { WORKFLOW } from '../../src/workflows/index.ts';
import { Codec } from '../support/codec.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

function echo(stage: Stage): DefinedAgent {
  return defineAgent({ name: 'echo', model: stage.provider('m'), instructions: 'Answer.' });
}

test('a transcript that cannot be read out of the history is not asked about; with the key back the session goes on', async () => {
  const stage = await openStage(({ messages }) => ({ text: `answer to ${messages.length} messages` }));
  const codec = new Codec();
  // Without room for a transcript each model call reads it out of the history.
  await stage.startWorker([echo(stage)], { memoryBytes: 1, dataConverter: { payloadCodecs: [codec] } });
  const client = new Client({
    connection: stage.client.connection,
    namespace: stage.client.options.namespace,
    dataConverter: { payloadCodecs: [new Codec()] },
  });
  const sessions = new Sessions(client, { taskQueue: stage.taskQueue });
  const session = await sessions.start('echo', { id: stage.id(), message: 'the secret' });
  const { lastText } = await untilPhase(session, 'idle');
  expect(lastText).toBe('answer to 2 messages');

  codec.hasKey = false;
  await session.send('And now?');
  const { wait, turn } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({
    reason: 'history_unreadable',
    message: 'the key of this payload is gone',
    next: { action: 'resume', sessionId: session.id },
  });
  expect(turn).toBe(1);
  expect(stage.model.requests).toHaveLength(1);

  codec.hasKey = true;
  await session.resume();
  expect((await untilPhase(session, 'idle')).lastText).toBe('answer to 4 messages');
  expect(stage.model.requests).toHaveLength(2);
});

test('a fork from a checkpoint that the history does not have is refused; from a plain client it waits', async () => {
  const stage = await openStage(() => ({ text: 'fine' }));
  await stage.startWorker([echo(stage)]);
  const session = await stage.sessions.start('echo', { id: stage.id(), message: 'hi' });
  const { runId } = await untilPhase(session, 'idle');
  // An id of the right form, of an event that ends no workflow task.
  const checkpointId = `${runId}:1`;
  const from = { sessionId: session.id, checkpointId };
  const id = stage.id('fork');
  const why = { by: 'ada', reason: 'to see' };
  const error = await rejection(stage.sessions.fork(from, { id, message: 'and?', ...why }));
  expect(error).toMatchObject({ code: 'CHECKPOINT_NOT_FOUND' });

  const origin = { kind: 'fork', sessionId: session.id, runId, eventId: 1, ...why };
  await stage.client.workflow.start(WORKFLOW.session, {
    workflowId: id,
    taskQueue: stage.taskQueue,
    args: [{ agent: 'echo', message: { text: 'and?', by: 'ada' }, origin }],
  });
  const fork = stage.sessions.get(id);
  const { wait } = await untilPhase(fork, 'waiting');
  expect(wait).toMatchObject({
    reason: 'history_unreadable',
    message: `session ${session.id} has no checkpoint ${checkpointId}`,
    next: { action: 'resume', sessionId: fork.id },
  });
  await expectSound(stage, fork);
  expect(stage.model.requests).toHaveLength(1);
  await fork.cancel();
  expect(await fork.result()).toMatchObject({ status: 'cancelled' });
});
